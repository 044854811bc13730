"""Running sweeps: the rows are those of a plain loop, whatever happens to the processes that make them."""

from __future__ import annotations

import csv
import json
import math
import multiprocessing
import os
import random
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.progress import listening
from spectralz.errors import FormatError, MissingDependencyError, OptionError, SolverError
from spectralz.result import plain
from spectralz.sweeps import Contestant, Sweep, read_rows, rows, run, runner
from spectralz.sweeps import sweep as task_module
from spectralz.sweeps.rows import COLUMNS, cells_of, csv_line, header, to_csv
from spectralz.sweeps.sweep import run_task
from tests.helpers import heard, started, wait_until

BP = Contestant(label="BP-200", method="BP-200")
MF = Contestant(label="mean field", method="mf", options={"restarts": 2})
FAILING = Contestant(label="too small", method="exact", options={"max_terms": 1})
SMALL = Sweep(
    name="small",
    contestants=(BP, MF, FAILING),
    generator="complete",
    parameters={"n": 5},
    values=(0.5, 1.0),
    repeats=3,
)


def steady(rows):
    """What equal sweeps have in common: all but times, memory and versions."""
    return [replace(row, seconds=None, peak_mib=None, versions="") for row in rows]


def plain_loop(sweep):
    return steady(row for task in sweep.tasks() for row in run_task(task, sweep.contestants, sweep.truth))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of SMALL, run through without trouble by two processes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(SMALL, folder, workers=2) == folder / "rows.csv"
    return folder


def no_processes(monkeypatch):
    monkeypatch.setattr(runner, "_Worker", lambda: pytest.fail("a process was started"))


@pytest.fixture
def here(monkeypatch):
    """Do the work in this process, which is quicker, and return the names of the tasks that were asked for."""
    asked = []

    def answers(self):
        for task in self.waiting:
            asked.append(task.instance)
            yield run_task(task, self.sweep.contestants, self.sweep.truth)

    monkeypatch.setattr(runner.Pool, "answers", answers)
    return asked


# Rows.


@pytest.mark.slow
def test_rows_equal_a_loop_over_tasks_and_methods(undisturbed):
    rows = iter(read_rows(undisturbed / "rows.csv"))
    for task in SMALL.tasks():
        model = sz.generators.complete(n=5, strength=task.x, seed=task.seed)
        truth = sz.log_z(model, "exact").log_z
        for label, method in (("BP-200", sz.PAPER_SETTINGS["BP-200"]), ("mean field", sz.MeanField(restarts=2))):
            row, result = next(rows), method.run(model)
            assert (row.instance, row.x, row.repeat, row.seed) == (task.instance, task.x, task.repeat, task.seed)
            assert (row.n, row.edges, row.label, row.method) == (5, 10, label, method.name)
            assert json.loads(row.options) == plain(vars(method))
            assert (row.log_z, row.truth, row.error) == (result.log_z, truth, result.log_z - truth)
            assert (row.kind, row.status, row.converged) == (result.kind, result.status, result.status.converged)
            assert (row.lower, row.upper, row.std_error) == (result.lower, result.upper, result.std_error)
            assert row.failure == ""
            assert row.seconds > 0.0
            assert 10.0 < row.peak_mib < 10_000.0
            assert sz.__version__ in row.versions
        assert next(rows).label == "too small"
    assert next(rows, None) is None


@pytest.mark.slow
def test_a_failing_method_is_a_row(undisturbed):
    failed = [row for row in read_rows(undisturbed / "rows.csv") if row.label == "too small"]
    assert len(failed) == 6
    for row in failed:
        assert row.failure.startswith("TooLargeError: ")
        assert (row.log_z, row.error, row.seconds, row.converged, row.kind) == (None, None, None, None, "")
        assert row.truth is not None


@pytest.mark.parametrize("error", [MemoryError(), ZeroDivisionError("by zero"), RecursionError("deep\nand long")])
def test_any_exception_is_a_row_and_the_others_go_on(monkeypatch, error):
    def fail(self, model):
        raise error

    monkeypatch.setattr(sz.MeanField, "_solve", fail)
    task = next(SMALL.tasks())
    bp, mf, _ = run_task(task, SMALL.contestants, True)
    assert bp.log_z is not None
    assert mf.log_z is None
    assert mf.failure.startswith(type(error).__name__)
    assert mf.method == "mf"


@pytest.mark.usefixtures("here")
def test_a_model_that_cannot_be_read_is_rows(tmp_path):
    (tmp_path / "bad.uai").write_text("MARKOV\nnonsense")
    sz.write(sz.generators.grid(2, 1.0, seed=0), tmp_path / "good.npz")
    files = tuple(str(tmp_path / name) for name in ("bad.uai", "missing.uai", "good.npz"))
    rows = read_rows(run(Sweep(name="files", contestants=(BP, MF), files=files), tmp_path / "rows", workers=1))
    assert [row.failure.split(":")[0] for row in rows[::2]] == ["FormatError", "FileNotFoundError", ""]
    assert [row.n for row in rows] == [None, None, None, None, 4, 4]


def test_columns_and_files(undisturbed):
    assert (undisturbed / "rows.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    assert Sweep.from_dict(json.loads((undisturbed / "sweep.json").read_text())) == SMALL
    assert sorted(path.name for path in undisturbed.iterdir()) == ["rows.csv", "sweep.json"]


def test_the_truth_is_empty_where_not_wanted_or_out_of_reach(monkeypatch):
    task = next(SMALL.tasks())
    assert run_task(task, (BP,), False)[0].truth is None
    monkeypatch.setattr(task_module, "Exact", lambda: sz.Exact(max_terms=1))
    (row,) = run_task(task, (BP,), True)
    assert (row.truth, row.error) == (None, None)
    assert row.log_z is not None


@pytest.mark.parametrize("field_strength", [0.0, 1.0])
def test_the_sdp_alone_is_an_upper_bound(field_strength):
    sdp = Contestant(label="SDP", method="sdp")
    sweep = replace(SMALL, contestants=(sdp,), parameters={"n": 5, "field_strength": field_strength})
    task = next(sweep.tasks())
    (row,) = run_task(task, sweep.contestants, True)
    model = task.model()
    whole = model.absorb_field() if field_strength else model
    D = sz.diagonal_sdp(whole.coupling, 1e-6).diagonal
    assert np.linalg.eigvalsh(whole.coupling + np.diag(D)).max() < 1e-12  # rounding of eigvalsh
    assert row.log_z == pytest.approx(5 * math.log(2) - D.sum(), abs=1e-12)
    assert (row.kind, row.method, row.converged) == ("upper bound", "sdp", True)
    assert json.loads(row.options)["tol"] == 1e-6
    assert row.truth < row.log_z <= row.upper


def environment(task, contestants, truth):
    rows = run_task(task, contestants, truth)
    return [replace(row, failure=json.dumps({name: os.environ[name] for name in runner.ONE_THREAD})) for row in rows]


@pytest.mark.slow
def test_workers_have_one_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_task", environment)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    (row,) = read_rows(run(replace(SMALL, contestants=(BP,)), tmp_path, workers=1, limit=1))
    assert set(json.loads(row.failure).values()) == {"1"}
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"} <= {*runner.ONE_THREAD}
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "NUMBA_NUM_THREADS" not in os.environ


@pytest.mark.slow
def test_progress_is_told(tmp_path):
    with heard() as told:
        path = run(SMALL, tmp_path, workers=1, limit=2)
        run(SMALL, tmp_path, workers=1, limit=0)
    assert [task for task, _ in told] == ["running small"] * 3
    assert [fraction for _, fraction in told] == pytest.approx([0, 1 / 6, 2 / 6])
    assert len(read_rows(path)) == 6


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": 1.5}, {"limit": -1}])
def test_wrong_options_are_refused(tmp_path, wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        run(SMALL, tmp_path, **wrong)


# Going on.


def torn_places(content):
    """Places of every kind at which a file can end, and what is then whole: nothing, or some tasks of three rows."""
    lines = content.splitlines(keepends=True)
    ends = np.cumsum([len(line) for line in lines])
    return {
        "nothing": (0, 0),
        "torn header": (7, 0),
        "header": (ends[0], 0),
        "torn first row": (ends[0] + 9, 0),
        "half a task": (ends[2], 0),
        "half a task and a torn row": (ends[4] + 30, 1),
        "all but the line break": (ends[3] - 1, 0),
        "a whole task": (ends[3], 1),
        "one byte of the next": (ends[6] + 1, 2),
        "all but the last byte": (len(content) - 1, 5),
    }


@pytest.mark.parametrize("place", list(torn_places(b"\n" * 20)))
def test_goes_on_from_wherever_the_file_ends(undisturbed, tmp_path, here, place):
    content = (undisturbed / "rows.csv").read_bytes()
    end, whole = torn_places(content)[place]
    (tmp_path / "sweep.json").write_bytes((undisturbed / "sweep.json").read_bytes())
    (tmp_path / "rows.csv").write_bytes(content[:end])
    (tmp_path / ".rows.csv.left").write_text("of a killed write")
    rows = read_rows(run(SMALL, tmp_path))
    assert here == [task.instance for task in SMALL.tasks()][whole:]
    assert steady(rows) == steady(read_rows(undisturbed / "rows.csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "sweep.json"]


def test_doubled_and_damaged_rows_are_done_again(undisturbed, tmp_path, here):
    lines = (undisturbed / "rows.csv").read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 40 + b"\n"  # in the first task
    lines.insert(6, lines[5])  # in the second
    (tmp_path / "sweep.json").write_bytes((undisturbed / "sweep.json").read_bytes())
    (tmp_path / "rows.csv").write_bytes(b"".join(lines))
    rows = read_rows(run(SMALL, tmp_path))
    assert here == [task.instance for task in SMALL.tasks()][:2]
    assert steady(rows) == steady(read_rows(undisturbed / "rows.csv"))


def _with_cell(line, name, text):
    cells = cells_of(line.decode())
    cells[COLUMNS.index(name)] = text
    return csv_line(cells).encode()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log_z", "garbage"),
        ("log_z", "1.5.2"),
        ("log_z", "nan"),
        ("log_z", ""),
        ("log_z", "3.25"),  # no longer truth + error
        ("truth", "1e400"),
        ("error", "1_0"),
        ("lower", "99.0"),  # above the upper bound
        ("x", ""),
        ("seed", "0x7"),
        ("repeat", "1.5"),
        ("edges", "\u0663"),  # a digit, but not one that is written
        ("converged", "Tru"),
        ("kind", "exactt"),
    ],
)
def test_rows_with_a_corrupt_cell_are_done_again(undisturbed, tmp_path, here, name, text):
    lines = (undisturbed / "rows.csv").read_bytes().splitlines(keepends=True)
    place = next(k for k, line in enumerate(lines) if k > 3 and b"mean field" in line)
    lines[place] = _with_cell(lines[place].rstrip(b"\n"), name, text)
    if name == "lower":
        lines[place] = _with_cell(lines[place].rstrip(b"\n"), "upper", "98.0")
    (tmp_path / "sweep.json").write_bytes((undisturbed / "sweep.json").read_bytes())
    (tmp_path / "rows.csv").write_bytes(b"".join(lines))
    rows = read_rows(run(SMALL, tmp_path))
    assert here == [[task.instance for task in SMALL.tasks()][1]]
    assert steady(rows) == steady(read_rows(undisturbed / "rows.csv"))


def test_rows_with_labels_that_spreadsheets_would_compute_are_found_again(tmp_path, here):
    labels = ["=1+1", "+BP", "-BP", "@BP", "'=BP", "''BP", "BP"]
    contestants = tuple(Contestant(label=label, method="BP-200") for label in labels)
    sweep = replace(SMALL, contestants=contestants, repeats=1, truth=False)
    path = run(sweep, tmp_path)
    assert [row.label for row in read_rows(path)] == 2 * labels
    del here[:]
    run(sweep, tmp_path)
    assert here == []
    for line in path.read_text().splitlines()[1:]:
        for cell in csv.reader([line]).__next__():
            assert cell[:1] not in ("=", "@", "\t")
            assert cell[:1] not in ("+", "-") or float(cell) == float(cell)


def test_a_finished_sweep_returns_at_once(undisturbed, monkeypatch):
    no_processes(monkeypatch)
    before = (undisturbed / "rows.csv").stat()
    assert run(SMALL, undisturbed) == undisturbed / "rows.csv"
    assert (undisturbed / "rows.csv").stat().st_mtime_ns == before.st_mtime_ns


def test_rows_of_a_task_are_one_write_to_the_disk(tmp_path, monkeypatch):
    events = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda handle, data: events.append(bytes(data)) or write(handle, data))
    monkeypatch.setattr(os, "fsync", lambda handle: events.append("sync") or fsync(handle))
    file = rows.RowFile(tmp_path / "rows.csv", ["BP-200", "mean field"], ["a", "b"])
    found = run_task(next(SMALL.tasks()), (BP, MF), False)
    file.append([replace(row, instance="b") for row in found])
    file.append([replace(row, instance="b") for row in found])  # a second time: dropped
    assert [event if event == "sync" else event.count(b"\n") for event in events] == [2, "sync"]
    file.append([replace(row, instance="a") for row in found])
    assert [row.instance for row in read_rows(file.path)] == ["b", "b", "a", "a"]
    file.settle()
    assert [row.instance for row in read_rows(file.path)] == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"repeats": 4}, "repeats = 3, and this one has 4"),
        ({"contestants": (BP,)}, "contestants"),
        ({"seed": 1}, "seed"),
    ],
)
def test_another_sweep_is_refused(undisturbed, monkeypatch, changes, words):
    no_processes(monkeypatch)
    before = (undisturbed / "rows.csv").read_bytes()
    with pytest.raises(OptionError, match=words) as caught:
        run(replace(SMALL, **changes), undisturbed)
    assert "use another folder" in str(caught.value)
    assert (undisturbed / "rows.csv").read_bytes() == before


def test_strange_folders_are_refused_and_left_alone(undisturbed, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,2\n")
    with pytest.raises(OptionError, match=r"no sweep\.json"):
        run(SMALL, tmp_path)
    (tmp_path / "sweep.json").write_bytes((undisturbed / "sweep.json").read_bytes())
    with pytest.raises(OptionError, match="columns other than those"):
        run(SMALL, tmp_path)
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(OptionError, match="not the configuration"):
        run(SMALL, tmp_path)
    assert rows.read_text() == "a,b\n1,2\n"


def test_two_runners_do_not_share_a_folder(undisturbed):
    with rows.locked(undisturbed), pytest.raises(OptionError, match="another process is running"):
        run(SMALL, undisturbed)
    run(SMALL, undisturbed)


# Being killed. What is killed here is always a process of our own.

MANY = replace(SMALL, name="many", repeats=60)
BYTES_A_MODEL = 1200  # or a little less
SCRIPT = """
import json, sys
from pathlib import Path
from spectralz.sweeps import Sweep, run
if __name__ == "__main__":
    run(Sweep.from_dict(json.loads(sys.argv[1])), Path(sys.argv[2]), workers=int(sys.argv[3]))
"""


def start(tmp_path, sweep, folder, workers=1):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return started([sys.executable, str(script), json.dumps(sweep.to_dict()), str(folder), str(workers)])


def size(folder):
    return (folder / "rows.csv").stat().st_size if (folder / "rows.csv").exists() else 0


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.slow
def test_killed_three_times_the_rows_equal_an_undisturbed_run(tmp_path):
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    moment = random.Random(seed)
    folder = tmp_path / "killed"
    for number in range(3):
        # After up to 20 models more; the first time, perhaps before there is any row.
        grown = size(folder) + moment.randrange(20 * BYTES_A_MODEL)
        latest = time.monotonic() + (30.0 if number else moment.random() * 2.0)
        process = start(tmp_path, MANY, folder, workers=1 + number % 2)
        wait_until(lambda: size(folder) >= grown or time.monotonic() > latest)  # noqa: B023
        time.sleep(moment.random() * 0.02)
        workers = children(process.pid)
        process.kill()
        process.communicate()
        wait_until(lambda: all(map(is_gone, workers)), seconds=10.0)  # noqa: B023
    text = (folder / "rows.csv").read_text()
    kept = [task.instance for task in MANY.tasks() if text.count(f"{task.instance},") == len(MANY.contestants)]
    assert 0 < len(kept) < 120, "killed before the first row or after the last: a test of nothing"
    before = steady(read_rows(folder / "rows.csv"))
    rows = steady(read_rows(run(MANY, folder, workers=2)))
    assert rows == plain_loop(MANY)
    assert all(row in rows for row in before)


@pytest.mark.slow
def test_an_interrupt_keeps_the_rows_and_says_how_to_go_on(tmp_path):
    def interrupt(task, fraction):
        if fraction > 0.4:
            raise KeyboardInterrupt

    with listening(interrupt), pytest.raises(KeyboardInterrupt, match=r"3 of 6 models are done .* the same command"):
        run(SMALL, tmp_path, workers=1)
    assert multiprocessing.active_children() == []
    assert len(read_rows(tmp_path / "rows.csv")) == 9
    assert steady(read_rows(run(SMALL, tmp_path, workers=1))) == plain_loop(SMALL)


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_is_quick_and_quiet(tmp_path):
    process = start(tmp_path, MANY, tmp_path / "rows")
    wait_until(lambda: size(tmp_path / "rows") > 2000)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert 0 < len(read_rows(tmp_path / "rows" / "rows.csv")) < 60 * 2 * 3  # long before the end
    assert "the same command continues from there" in errors
    assert errors.count("Traceback") == 1  # none from the workers


def deadly(task, contestants, truth):
    if task.x == 1.0 and task.repeat == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task, contestants, truth)


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_rows_with_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_task", deadly)
    rows = read_rows(run(SMALL, tmp_path, workers=2))
    expected = plain_loop(SMALL)
    assert len(rows) == len(expected)
    for row, other in zip(steady(rows), expected, strict=True):
        if row.x == 1.0 and row.repeat == 1:
            assert "SIGKILL" in row.failure
            assert (row.instance, row.label, row.log_z, row.n) == (other.instance, other.label, None, None)
        else:
            assert row == other


@pytest.mark.slow
def test_a_worker_that_dies_once_costs_nothing(tmp_path):
    killed = []

    def kill(task, fraction):
        if fraction > 0.0 and not killed:
            killed.append(multiprocessing.active_children()[0])
            killed[0].kill()

    with listening(kill):
        rows = read_rows(run(SMALL, tmp_path, workers=1))
    assert killed
    assert steady(rows) == plain_loop(SMALL)


def test_workers_that_never_begin_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_serve", os.abort)  # takes no argument: it fails before the first word
    with pytest.raises(SolverError, match=r"3 worker processes in a row .* if __name__"):
        run(SMALL, tmp_path, workers=1)


# Dask.


def test_dask_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"spectralz\[dask\]"):
        run(SMALL, tmp_path, dask="tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_killed_dask_worker_costs_no_row(tmp_path):
    distributed = pytest.importorskip("distributed")
    sweep = replace(SMALL, name="dask", repeats=15)
    killed = []
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:

        def kill(task, fraction):
            if fraction > 0.1 and not killed:
                killed.extend(list(client.run(os.getpid).values())[:1])
                os.kill(killed[0], signal.SIGKILL)

        with listening(kill):
            rows = read_rows(run(sweep, tmp_path, dask=cluster.scheduler_address))
    assert killed
    assert steady(rows) == plain_loop(sweep)


@pytest.mark.parametrize("address", ["nonsense", "nonsense://x"])
def test_an_address_that_is_none_is_refused_at_once(tmp_path, address):
    pytest.importorskip("distributed")
    with pytest.raises(OptionError, match="must look like tcp://"):
        run(SMALL, tmp_path, dask=address)


@pytest.mark.slow
@pytest.mark.parametrize("length", [131_073, 10**6])
def test_lines_of_any_length_are_rows(tmp_path, length):
    """Options may hold a number per spin, and a failure whatever a library says."""
    path = run(SMALL, tmp_path, workers=1)
    rows = read_rows(path)
    long = [replace(row, failure="x" * length) for row in rows]
    path.write_text(header() + to_csv(long))
    assert read_rows(path) == long
    assert read_rows(run(SMALL, tmp_path, workers=1)) == long  # nothing is done again
    path.write_bytes(path.read_bytes().replace(b"xxx", b"\xff\xfe\xff", 1))
    with pytest.raises(FormatError, match="not text"):
        read_rows(path)


STARTING = """
import sys, time
from multiprocessing import context
from pathlib import Path
from spectralz.cli import main

start = context.SpawnProcess.start
def slow_start(process):
    print("starting", flush=True)
    time.sleep(0.2)
    start(process)
    time.sleep(0.2)
context.SpawnProcess.start = slow_start
if __name__ == "__main__":
    main(["sweep", sys.argv[1], "--out", sys.argv[2], "--workers", "2"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(4))
def test_an_interrupt_while_workers_start_is_not_lost(tmp_path, moment):
    """Sent to the whole group, as a terminal does it, at a random moment of the start of two workers."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    (tmp_path / "starting.py").write_text(STARTING)
    (tmp_path / "long.toml").write_text(
        'methods = ["bp"]\nstrengths = [0.5]\nrepeats = 100000\n[model]\ngenerator = "grid"\nside = 8\n'
    )
    command = [sys.executable, str(tmp_path / "starting.py"), str(tmp_path / "long.toml"), str(tmp_path / "rows")]
    process = started(command, start_new_session=True)
    try:
        assert process.stdout.readline() == "starting\n"
        time.sleep(random.Random(seed).random() * 0.8)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "the same command continues from there" in errors
    assert "Traceback" not in errors
