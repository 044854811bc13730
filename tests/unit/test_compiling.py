"""What a first call does beside its work: it compiles, says so, keeps the result, and leaves it out of the clock."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import pytest

import spectralz as sz
from spectralz._support import clock, compiling
from spectralz._support.progress import listening
from spectralz._support.settings import using_settings

FIRST_CALL = """
import time
import spectralz as sz
model = sz.generators.complete(8, 1.0, seed=0)
began = time.perf_counter()
found = {call}
print(found.seconds, time.perf_counter() - began)
"""


def run_in_fresh_process(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.slow
def test_a_first_call_says_what_it_compiles_if_a_filter_asks_and_does_not_count_it(cache):
    asking = "import warnings; warnings.filterwarnings('always', message='compiling')"
    out, err = run_in_fresh_process(asking + FIRST_CALL.format(call="sz.log_z(model)"), NUMBA_CACHE_DIR=cache)
    assert re.search(r"CompilingWarning: compiling, once: elimination.forward.forward, about [345]\.\d s\n", err)
    reported, passed = map(float, out.split())
    assert passed > 1.0  # it did compile
    assert reported < 0.5 * passed


@pytest.mark.slow
def test_what_was_compiled_is_found_again_without_a_word(cache):
    _, err = run_in_fresh_process(FIRST_CALL.format(call="sz.log_z(model)"), NUMBA_CACHE_DIR=cache)
    assert err == ""


@pytest.mark.slow
def test_the_budget_of_bounds_is_not_spent_on_compiling(tmp_path):
    out, _ = run_in_fresh_process(FIRST_CALL.format(call="sz.bounds(model, budget=2.0)"), NUMBA_CACHE_DIR=tmp_path)
    reported, passed = map(float, out.split())
    assert passed > 3.0
    assert reported < 2.0


@pytest.mark.slow
def test_who_listens_to_progress_hears_of_it_and_nobody_else(tmp_path):
    code = """
import spectralz as sz
from spectralz._support.progress import listening
heard = set()
with listening(lambda task, fraction: heard.add(task)):
    sz.log_z(sz.generators.complete(8, 1.0, seed=0))
print([task for task in heard if task.startswith("compiling, once: elimination.forward.forward, about ")] != [])
"""
    assert run_in_fresh_process(code, NUMBA_CACHE_DIR=tmp_path) == ("True\n", "")


# --------------------------------------------------------------------------------- where nothing can be written

# The package's own folder and the user's count as read-only; what else there is depends on numba's release.
READ_ONLY = """
import numba.core.caching as caching
for name in dir(caching):
    if name.lstrip("_").startswith(("InTreeCacheLocator", "UserWideCacheLocator")):
        getattr(caching, name).from_function = classmethod(lambda cls, *_: None)
import tempfile
tempfile.tempdir = {folder!r}
import spectralz as sz
from spectralz.kernels.elimination.forward import forward
print(sz.log_z(sz.generators.complete(4, 1.0, seed=0)).log_z, forward.stats.cache_path)
"""


@pytest.mark.slow
def test_without_a_place_for_the_cache_a_temporary_folder_of_our_own_is_used(tmp_path):
    out, _ = run_in_fresh_process(READ_ONLY.format(folder=str(tmp_path)), NUMBA_CACHE_DIR="")
    value, folder = out.split()
    assert float(value) == sz.log_z(sz.generators.complete(4, 1.0, seed=0)).log_z
    assert folder.startswith(str(tmp_path))
    (own,) = tmp_path.iterdir()
    assert own.stat().st_mode & 0o777 == 0o700
    _, err = run_in_fresh_process(READ_ONLY.format(folder=str(tmp_path)), NUMBA_CACHE_DIR="")
    assert err == ""  # found again


@pytest.mark.parametrize("what", ["missing", "open to others", "a link"])
def test_a_folder_that_is_not_ours_alone_is_not_used(tmp_path, monkeypatch, what):
    if what == "missing":
        monkeypatch.setattr(compiling.tempfile, "tempdir", str(tmp_path / "nowhere"))
    else:
        monkeypatch.setattr(compiling.tempfile, "tempdir", str(tmp_path))
        wanted = tmp_path / compiling._folder_of_our_own()
        assert wanted.is_dir()
        if what == "open to others":
            wanted.chmod(0o777)
        else:
            wanted.rename(tmp_path / "elsewhere")
            wanted.symlink_to(tmp_path / "elsewhere")
    assert compiling._folder_of_our_own() == ""


@pytest.mark.slow
def test_without_any_place_nothing_is_kept(tmp_path):
    out, _ = run_in_fresh_process(READ_ONLY.format(folder=str(tmp_path / "nowhere")), NUMBA_CACHE_DIR="")
    value, folder = out.split()
    assert float(value) == sz.log_z(sz.generators.complete(4, 1.0, seed=0)).log_z
    assert folder == "None"


# ------------------------------------------------------------------------------------------ files that are damaged

FIRST_KERNEL = """
import numpy as np
from spectralz._support.compiling import seconds_to_compile
from spectralz.kernels.sampling.flips import sums_of_logs
sums = np.empty(1)
seconds_to_compile(sums_of_logs)
sums_of_logs(np.ones((1, 3)), sums)
print(sums[0], len(sums_of_logs.stats.cache_hits))
"""


def _damage(folder, suffix, content):
    damaged = list(folder.rglob(f"*{suffix}"))
    for file in damaged:
        file.write_bytes(content)
    assert damaged


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".nbi", b"This is text.\n"),
        (".nbi", b""),
        (".nbc", b"This is text.\n"),
        (".nbc", b"I1\n."),  # a sound pickle of something else
    ],
)
def test_a_damaged_file_of_the_cache_is_dropped_and_the_kernel_compiled_again(tmp_path, suffix, content):
    first, _ = run_in_fresh_process(FIRST_KERNEL, NUMBA_CACHE_DIR=tmp_path)
    _damage(tmp_path, suffix, content)
    again, err = run_in_fresh_process(FIRST_KERNEL, NUMBA_CACHE_DIR=tmp_path)
    assert again == first
    assert first.endswith(" 0\n")
    assert "Traceback" not in err
    found, err = run_in_fresh_process(FIRST_KERNEL, NUMBA_CACHE_DIR=tmp_path)
    assert found == first.replace(" 0\n", " 1\n")
    assert err == ""


# ------------------------------------------------------------------------------------------ at once, and interrupted

# Both threads wait for each other, so that they ask for the same kernel at the same time.
IN_TWO_THREADS = """
import threading
import numpy as np
from spectralz._support import clock
from spectralz.kernels.sampling.flips import sums_of_logs
start, found = threading.Barrier(2), []
def ask(k):
    sums = np.empty(1)
    start.wait()
    sums_of_logs(np.full((1, 3), float(k)), sums)
    found.append((k, sums[0]))
threads = [threading.Thread(target=ask, args=(k,)) for k in (1, 2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*(value for _, value in sorted(found)), len(sums_of_logs.signatures), clock.left_out() > 0.0)
"""


@pytest.mark.slow
def test_two_threads_may_compile_the_same_at_once(tmp_path):
    out, err = run_in_fresh_process(IN_TWO_THREADS, NUMBA_CACHE_DIR=tmp_path)
    first, second, compiled, left_out = out.split()
    assert float(first) == pytest.approx(3.0 * math.log(2.0 * math.cosh(1.0)))
    assert float(second) == pytest.approx(3.0 * math.log(2.0 * math.cosh(2.0)))
    assert (compiled, left_out) == ("1", "True")
    assert err == ""


@pytest.mark.slow
def test_two_processes_may_compile_the_same_at_once(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([sys.executable, "-c", FIRST_KERNEL], env=environment, **pipes) for _ in range(2)]
    ended = [process.communicate() for process in both]
    found, err = run_in_fresh_process(FIRST_KERNEL, NUMBA_CACHE_DIR=tmp_path)
    assert found.endswith(" 1\n")  # what they left can be loaded
    assert err == ""
    for out, err in ended:
        assert out.split()[0] == found.split()[0]
        assert err == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to another process")
def test_after_an_interrupt_while_compiling_the_next_call_is_right(tmp_path):
    telling = """
from numba.core import event
class Telling(event.Listener):
    def on_start(self, event): print("compiling", flush=True)
    def on_end(self, event): pass
import spectralz as sz
from spectralz.kernels.elimination.forward import forward
event.register("numba:compile", Telling())
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    code = telling + "sz.log_z(sz.generators.complete(8, 1.0, seed=0), 'exact')"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes) as process:
        assert process.stdout.readline() == "compiling\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    out, err = run_in_fresh_process(
        "import spectralz as sz; print(sz.log_z(sz.generators.complete(8, 1.0, seed=0), 'exact').log_z)",
        NUMBA_CACHE_DIR=tmp_path,
    )
    assert float(out) == sz.log_z(sz.generators.complete(8, 1.0, seed=0), "exact").log_z
    assert err == ""


def _cache_that_raises(error):
    def load(*_):
        raise error

    dropped = []
    flush, disable = (lambda: dropped.append(True)), (lambda: dropped.append(False))
    cache = SimpleNamespace(load_overload=load, flush=flush, disable=disable)
    compiling.drop_damaged(cache)
    return cache, dropped


def test_an_interrupt_while_a_kernel_is_loaded_is_an_interrupt_and_no_damage():
    hidden = SystemError("returned a result with an exception set")
    hidden.__cause__ = KeyboardInterrupt()
    for error in (KeyboardInterrupt(), hidden):
        cache, dropped = _cache_that_raises(error)
        with pytest.raises(KeyboardInterrupt):
            cache.load_overload("signature", "context")
        assert dropped == []


def test_a_cache_that_cannot_be_mended_is_left_alone():
    cache, dropped = _cache_that_raises(ValueError("damaged"))
    assert cache.load_overload("signature", "context") is None
    assert dropped == [True]

    def refuse():
        raise PermissionError("read-only")

    cache.flush = refuse
    assert cache.load_overload("signature", "context") is None
    assert dropped == [True, False]


# -------------------------------------------------------------------------------------------------- the clock


def test_what_is_left_out_is_left_out_once_however_it_is_nested():
    wall, began = time.perf_counter(), clock.seconds()  # in this order, what passes in between is not counted
    clock.begin_leaving_out()
    clock.begin_leaving_out()
    time.sleep(0.02)
    clock.end_leaving_out()
    inside = clock.seconds()
    time.sleep(0.02)
    assert clock.seconds() == inside  # it stands still
    clock.end_leaving_out()
    time.sleep(0.02)
    counted, passed = clock.seconds() - began, time.perf_counter() - wall
    assert 0.02 <= counted <= passed - 0.04


def test_seconds_are_left_out_afterwards_unless_they_were_already():
    began = clock.seconds()
    clock.leave_out(5.0)
    assert -5.0 <= clock.seconds() - began < -4.0
    clock.begin_leaving_out()
    inside = clock.seconds()
    clock.leave_out(5.0)
    assert clock.seconds() == inside
    clock.end_leaving_out()


def test_compiling_in_another_thread_is_left_out_too():
    began = clock.seconds()
    worker = threading.Thread(target=lambda: (clock.begin_leaving_out(), time.sleep(0.05), clock.end_leaving_out()))
    worker.start()
    worker.join()
    assert clock.seconds() - began < 0.04


def test_a_kernel_that_is_compiled_stops_the_clock():
    kernel = compiling.numba.njit(lambda x: x + 1.0)
    began, wall = clock.seconds(), time.perf_counter()
    assert kernel(1.0) == 2.0
    assert clock.seconds() - began < 0.5 * (time.perf_counter() - wall)


def test_budgets_are_planned_by_the_clock_that_is_told():
    with clock.using_clock(lambda: 7.0):
        assert clock.now() == 7.0
        assert clock.seconds() != 7.0
    assert clock.now() != 7.0


# ------------------------------------------------------------------------------------------------- everything


@pytest.mark.slow
def test_warming_up_reaches_every_kernel_and_says_how_far_it_is(tmp_path):
    code = """
import spectralz as sz
from spectralz._support.progress import listening
heard = []
with listening(lambda task, fraction: heard.append((task, fraction))):
    done = sz.warm_up(1)  # others would leave inner kernels to the files of those that call them
from spectralz._support.compiling import KERNELS
assert [kernel.py_func.__name__ for kernel in KERNELS if not kernel.signatures] == []
assert done.kernels == len(KERNELS) <= done.compiled
assert sz.warm_up(2).compiled == 0
assert max(fraction for task, fraction in heard if task == "compiling, once") > 0.9
print(done.folder)
"""
    assert run_in_fresh_process(code, NUMBA_CACHE_DIR=tmp_path) == (f"{tmp_path}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["exact, 8 x 8 grid", "wmbe, 8 x 8 grid", "auto, 60 dense spins, budget 2"])
def test_first_calls_stay_quick(case):
    """A loose guard, at twice what is wanted; ``python -m benchmarks.compiling`` measures."""
    from benchmarks.compiling import TARGETS, first_call

    assert first_call(case)[0] < 2.0 * TARGETS[case]


def _compile(listener, event):
    listener.on_start(event)
    listener.on_end(event)


def test_a_terminal_or_who_asks_is_told_once(capsys, monkeypatch):
    import spectralz.kernels.mean_field  # noqa: F401  (so that there is a kernel)

    notice = compiling._Notice()
    events = [SimpleNamespace(data={"dispatcher": compiling.KERNELS[0]}) for _ in range(2)]
    with listening(lambda task, fraction: None):
        _compile(notice, events[0])
    _compile(notice, events[0])  # nobody is looking
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _compile(notice, events[0])  # it is no error, whatever the filters
    assert capsys.readouterr().err == ""
    with pytest.warns(sz.errors.CompilingWarning, match="compiling, once: "):
        _compile(notice, events[0])
    with using_settings(verbose=True):
        _compile(notice, events[0])
    assert capsys.readouterr().err.startswith("spectralz: compiling, once: ")
    notice.was_printed = False
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for event in events:  # the second one takes no time, since it is compiled
        _compile(notice, event)
    assert capsys.readouterr().err.count("spectralz: compiling, once: ") == 1


# ----------------------------------------------------------------------------------- compiling changes no answer


def _kernel_of_ours():
    """Return a kernel that has never been compiled."""
    code = "def twice(x):\n    return helper(x) + helper(x)\ndef helper(x):\n    return x + 1.0\n"
    scope = {"__name__": "spectralz.kernels.planted"}
    exec(code, scope)  # so that it is a function of our kernels, in no file
    scope["helper"] = compiling.numba.njit(scope["helper"])
    return compiling.numba.njit(scope["twice"]), scope["helper"]


def test_the_time_to_compile_counts_what_is_called_and_only_once():
    kernel, helper = _kernel_of_ours()
    both = compiling.seconds_to_compile(kernel)
    assert both == pytest.approx(sum(compiling.seconds_of(f) for f in (kernel.py_func, helper.py_func)))
    assert compiling.seconds_to_compile(kernel, helper) == pytest.approx(both)
    assert kernel(1.0) == 4.0
    assert compiling.seconds_to_compile(kernel) == 0.0


BY_CHARGES = """
import json, sys, warnings
import numpy as np
import spectralz as sz
from spectralz._support import clock

class Seconds(clock.Operations):
    "Charged operations, which the code takes for seconds."

clock.operations = lambda: None
warnings.simplefilter("ignore")
grid, dense = sz.generators.grid(7, 1.0, seed=0), sz.generators.complete(30, 0.5, seed=0)

def told(verb, *arguments, **options):
    with clock.using_clock(Seconds()):
        found = verb(*arguments, budget=0.3, threads=1, exclude=["exact"], **options)
    def less(value):
        if isinstance(value, dict):
            return {key: less(each) for key, each in value.items() if "seconds" not in key}
        return [less(each) for each in value] if isinstance(value, list) else value
    print(json.dumps(less(found.to_dict())))

for model in (grid, dense):
    told(sz.log_z, model)
    told(sz.bounds, model)
told(sz.marginals, grid)
told(sz.thermodynamics, dense, [0.5, 1.0])
"""


@pytest.mark.slow
def test_an_empty_and_a_full_cache_give_the_same_plan_and_the_same_digits(tmp_path):
    first, second = (run_in_fresh_process(BY_CHARGES, NUMBA_CACHE_DIR=tmp_path)[0] for _ in range(2))
    assert len(first.splitlines()) == 6
    assert {"mps", "wmbe", "annealing"} <= {row["method"] for row in json.loads(first.splitlines()[0])["tried"]}
    assert "not compiled" not in first
    assert first == second


@pytest.mark.slow
def test_seconds_and_compile_seconds_are_the_time_of_the_call(tmp_path):
    code = """
import time
import spectralz as sz
model = sz.generators.complete(8, 0.2, seed=0)
x = sz.sample(model, 200)
for call in (
    lambda: sz.log_z(model),
    lambda: sz.bounds(model, budget=1.0),
    lambda: sz.map_state(model, "search", work=1e6),
    lambda: sz.thermodynamics(model, [1.0], "annealing", work=1e6),
    lambda: sz.temperature(model, x),
    lambda: sz.fit(x),
):
    began = time.perf_counter()
    found = call()
    print(type(found).__name__, time.perf_counter() - began, found.seconds, found.compile_seconds)
"""
    out, _ = run_in_fresh_process("import warnings; warnings.simplefilter('ignore')" + code, NUMBA_CACHE_DIR=tmp_path)
    rows = [line.split() for line in out.splitlines()]
    assert len(rows) == 6
    for name, *numbers in rows:
        passed, seconds, compiling_took = map(float, numbers)
        assert passed == pytest.approx(seconds + compiling_took, abs=0.3 + 0.05 * passed), name
    assert float(rows[0][3]) == pytest.approx(0.0, abs=0.5)  # the samples have compiled it
    assert float(rows[1][3]) > 1.0


# --------------------------------------------------------------------------------------------------- interrupts


def hide(*_, **__):
    """Do what numba makes of an interrupt while it looks up a function or loads compiled code."""
    raise SystemError("CPUDispatcher returned a result with an exception set") from KeyboardInterrupt()


def test_an_interrupt_behind_several_errors_is_one():
    error, cause = SystemError("c"), ValueError("b")
    error.__cause__, error.__context__ = cause, KeyboardInterrupt()
    assert sz.errors.is_interrupt(error)
    cause.__context__ = error  # a circle
    error.__context__ = None
    assert not sz.errors.is_interrupt(error)


@pytest.mark.parametrize(
    ("place", "ask"),
    [
        ("spectralz.methods.exact.Exact._solve", lambda model: sz.log_z(model, "exact")),
        ("spectralz.methods.exact.Exact._solve_marginals", lambda model: sz.marginals(model, "exact")),
        ("spectralz.methods.exact.Exact._sample", lambda model: sz.sample(model, 3, "exact")),
        ("spectralz.inference.verbs.bracket", lambda model: sz.bounds(model)),
        ("spectralz.inference.temperatures._listed", lambda model: sz.thermodynamics(model, [1.0])),
        ("spectralz.inference.heaviest._eliminated", lambda model: sz.map_state(model)),
        ("spectralz.inference.ratio._bridged", lambda model: sz.log_ratio(model, 2 * model)),
        ("spectralz.learning.fitting._fit", lambda model: sz.fit([[0, 1], [1, 0]])),
    ],
)
def test_an_interrupt_that_numba_hides_is_an_interrupt(monkeypatch, place, ask):
    monkeypatch.setattr("spectralz.inference.ratio._exactly", lambda *_: None)
    monkeypatch.setattr(place, hide)
    with pytest.raises(KeyboardInterrupt):
        ask(sz.generators.complete(4, 1.0, seed=0))


def test_a_fit_keeps_what_it_has_if_numba_hides_an_interrupt(monkeypatch):
    monkeypatch.setattr("spectralz.learning.minimizing.report", hide)
    assert sz.fit([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]]).interrupted
