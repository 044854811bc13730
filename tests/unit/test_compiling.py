"""What a first call does beside its work: it compiles, says so, keeps the result, and leaves it out of the clock."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import spectralz as sz
from spectralz._support import clock, compile_times, compiling
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
def test_a_first_call_says_what_it_compiles_and_does_not_count_it(cache):
    out, err = run_in_fresh_process(FIRST_CALL.format(call="sz.log_z(model)"), NUMBA_CACHE_DIR=cache)
    assert re.fullmatch(r"spectralz: compiling, once: elimination.forward.forward, about [345]\.\d s\n", err)
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
from spectralz._support.compile_times import seconds_to_compile
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
    done = sz.warm_up()
from spectralz._support.compiling import KERNELS
assert [kernel.py_func.__name__ for kernel in KERNELS if not kernel.signatures] == []
assert done.kernels == len(KERNELS) <= done.compiled
assert sz.warm_up().compiled == 0
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


def test_listening_is_what_hides_the_notice(capsys):
    import spectralz.kernels.mean_field  # noqa: F401  (so that there is a kernel)

    notice = compiling._Notice()
    events = [SimpleNamespace(data={"dispatcher": compiling.KERNELS[0]}) for _ in range(2)]
    with listening(lambda task, fraction: None):
        _compile(notice, events[0])
    assert capsys.readouterr().err == ""
    for event in events:  # the second one takes no time, since it is compiled
        _compile(notice, event)
    assert capsys.readouterr().err.count("spectralz: compiling, once: ") == 1


# ------------------------------------------------------------------------------------------- what is left out


def _kernel_of_ours():
    """Return a kernel that has never been compiled."""
    code = "def twice(x):\n    return helper(x) + helper(x)\ndef helper(x):\n    return x + 1.0\n"
    scope = {"__name__": "spectralz.kernels.planted"}
    exec(code, scope)  # so that it is a function of our kernels, in no file
    scope["helper"] = compiling.numba.njit(scope["helper"])
    return compiling.numba.njit(scope["twice"]), scope["helper"]


def test_the_time_to_compile_counts_what_is_called_and_only_once():
    kernel, helper = _kernel_of_ours()
    both = compile_times.seconds_to_compile(kernel)
    assert both == pytest.approx(sum(compile_times.seconds_of(f) for f in (kernel.py_func, helper.py_func)))
    assert compile_times.seconds_to_compile(kernel, helper) == pytest.approx(both)
    assert kernel(1.0) == 4.0
    assert compile_times.seconds_to_compile(kernel) == 0.0


def test_a_kernel_that_takes_too_long_is_refused_only_where_it_can_be_left_out():
    kernel, _ = _kernel_of_ours()
    with using_settings(compile_until=clock.left_out()):
        assert compile_times.refusal_of(kernel) == "not compiled yet, about 1 s: run spectralz warm-up once"
        with compile_times.leaving_out_late_kernels(), pytest.raises(compile_times.NotCompiledError, match="warm-up"):
            kernel(1.0)
        with clock.counting_operations(), compile_times.leaving_out_late_kernels():
            assert kernel(1.0) == 4.0  # what is counted must not depend on what was compiled before
        with compile_times.leaving_out_late_kernels():
            assert kernel(2.0) == 6.0  # compiled by now
    kernel, _ = _kernel_of_ours()
    with using_settings(compile_until=clock.left_out()):
        assert kernel(1.0) == 4.0


def test_a_call_may_compile_as_long_as_its_budget_and_at_least_five_seconds():
    for budget, wanted in ((0.1, 5.0), (20.0, 20.0)):
        with compile_times.compiling_for(budget):
            assert compile_times.seconds_left() == pytest.approx(wanted, abs=0.01)
            with compile_times.compiling_for(100.0):  # a call inside another one
                assert compile_times.seconds_left() == pytest.approx(wanted, abs=0.01)
    assert compile_times.seconds_left() == math.inf


@pytest.fixture
def nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(compile_times, "is_compiled", lambda kernel: False)
    monkeypatch.setattr(compile_times, "LEAST_SECONDS", 0.0)


GRID = sz.generators.grid(6, 1.0, seed=0)


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")  # the budget is short
def test_auto_leaves_out_what_is_not_compiled_and_says_so(nothing_is_compiled):
    found = sz.log_z(GRID, budget=0.5, exclude=["exact"])
    why = {row.method: row.why for row in found.tried}
    for name in ("mps", "wmbe"):
        assert re.fullmatch(r"not compiled yet, about \d+ s: run spectralz warm-up once", why[name])
    assert "a path from a subgraph: not compiled yet" in str(found.status)
    assert math.isfinite(found.log_z)


def test_bounds_leave_it_out_too(nothing_is_compiled):
    why = {row.method: row.status for row in sz.bounds(GRID, budget=0.5).rows}
    assert why["wmbe"].startswith("not compiled yet, about ")


def test_who_asks_by_name_or_counts_operations_gets_everything(nothing_is_compiled):
    assert sz.log_z(GRID, "wmbe").upper is not None
    assert {row.method for row in sz.log_z(GRID, work=1e8, exclude=["exact"]).tried if row.log_z} >= {"mps"}


@pytest.mark.slow
def test_a_first_call_of_auto_returns_soon_and_a_later_one_has_more(tmp_path):
    code = """
import spectralz as sz, time
model = sz.generators.grid(8, 1.0, seed=0)
for _ in range(2):
    found = sz.log_z(model, budget=2, exclude=["exact"])
    print([row.method for row in found.tried if row.why.startswith("not compiled yet")])
"""
    out, err = run_in_fresh_process(code, NUMBA_CACHE_DIR=tmp_path)
    first, second = out.splitlines()
    assert "mps" in first
    assert len(second) < len(first)
    assert "about " in err
    with_everything = code.replace("model =", "sz.warm_up()\nmodel =")
    assert run_in_fresh_process(with_everything, NUMBA_CACHE_DIR=tmp_path)[0] == "[]\n[]\n"


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


def test_cold_code_is_compiled_once_python_has_spent_as_long_on_it(monkeypatch):
    calls = []

    def doubled(x):
        return 2.0 * x

    monkeypatch.setattr(compiling, "compiled", lambda function: _Spy(function, calls))
    monkeypatch.setattr(compiling, "is_compiled", lambda kernel: bool(calls))
    monkeypatch.setattr(compiling, "seconds_to_compile", lambda kernel: 2.5)
    monkeypatch.setattr(compiling, "SECONDS_PER_STEP", 1.0)
    late = compiling.compiled_late(lambda x: 1)(doubled)
    assert [late(3.0) for _ in range(4)] == [6.0] * 4
    assert len(calls) == 2  # the third call, and from then on
    at_once = compiling.compiled_late(lambda x: 3)(doubled)
    calls.clear()
    assert at_once(3.0) == 6.0
    assert len(calls) == 1


def test_warming_up_compiles_cold_code_too(monkeypatch):
    calls = []
    monkeypatch.setattr(compiling, "compiled", lambda function: _Spy(function, calls))
    monkeypatch.setattr(compiling, "is_compiled", lambda kernel: False)
    late = compiling.compiled_late(lambda x: 0)(lambda x: x)
    with using_settings(compile_until=math.inf):
        assert late(1.0) == 1.0
    assert len(calls) == 1


class _Spy:
    """A kernel that remembers its calls."""

    def __init__(self, function, calls):
        self.py_func, self.calls = function, calls

    def __call__(self, *args):
        self.calls.append(args)
        return self.py_func(*args)
