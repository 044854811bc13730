"""Answers that are continued, by another call or from a file: tables written out, and killed processes."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import FormatError, OptionError
from spectralz.inference import long_runs
from spectralz.inference.long_runs import read_checkpoint, write_checkpoint
from spectralz.result import Populations

MODEL = sz.generators.complete(20, 0.3, seed=3)
TRUTH = sz.log_z(MODEL, "exact").log_z
OPTIONS = {"exclude": ["exact", "states", "ep", "mps", "bp"]}


def mean_by_hand(populations):
    """Return log Z of populations from one base: the mean of the groups, populations counting by their states."""
    size, top = np.array(populations.size, dtype=float), populations.log_z[0].max()
    assert set(populations.base) == {0}
    means = [np.exp(table - top).sum(axis=1).mean() for table in populations.log_z]
    return math.log(size @ means / size.sum()) + top


@pytest.mark.parametrize("method", ["auto", "annealing"])
def test_more_populations_count_with_those_before(method):
    options = {**OPTIONS, "work": 1e8} if method == "auto" else {"population": 16}
    first = sz.log_z(MODEL, method, **options)
    second = sz.log_z(MODEL, method, more=first, **options)
    third = sz.log_z(MODEL, method, more=second, **options)
    for answer, calls in ((first, 1), (second, 2), (third, 3)):
        assert answer.populations.calls == calls
        assert answer.populations.method == method
        assert answer.log_z == pytest.approx(mean_by_hand(answer.populations) + MODEL.constant, abs=1e-9)
        assert abs(answer.log_z - TRUTH) < 4.0 * answer.std_error
    assert third.std_error < second.std_error < first.std_error
    kept = len(first.populations.log_z)
    for before, after in zip(first.populations.log_z, second.populations.log_z[:kept], strict=True):
        assert np.array_equal(before, after)
    new = second.populations.log_z[kept:]
    assert not any(np.isin(table, first.populations.log_z[0]).any() for table in new)  # other random numbers
    assert third.populations.seconds > second.populations.seconds > first.populations.seconds
    again = sz.log_z(MODEL, method, more=first, **options)
    assert again == second


def test_the_table_survives_files_and_processes():
    answer = sz.log_z(MODEL, "annealing", population=16)
    copy = pickle.loads(pickle.dumps(answer))
    assert copy == answer
    plain = json.dumps(answer.to_dict(), allow_nan=False)
    assert len(plain) < 50_000
    assert Populations.from_dict(json.loads(plain)["populations"]) == answer.populations
    assert sz.log_z(MODEL, "annealing", population=16, more=copy) == sz.log_z(
        MODEL, "annealing", population=16, more=answer
    )


@pytest.mark.slow
def test_phases_are_measured_further():
    """A trap: a phase with a population of its own, whose bases come back from the table."""
    edges = [(2 * k, 2 * k + 1) for k in range(20)]
    every = [(i, j) for i in range(40) for j in range(i)]
    coupling = dict.fromkeys(every, 3.4 / 40)
    coupling |= {(j, i): coupling[j, i] - 1.0 for i, j in edges}
    model = sz.Ising.from_edges(40, list(coupling), list(coupling.values()))
    options = {"work": 3e8, "exclude": ["exact", "quadrature", "states", "ep", "mps", "bp"]}
    truth = sz.log_z(model).log_z
    first = sz.log_z(model, **options)
    second = sz.log_z(model, more=first, **options)
    assert second.populations.bases == first.populations.bases
    for answer in (first, second):
        assert answer.trusted
        assert abs(answer.log_z - truth) < 5.0 * answer.std_error
    assert len(set(second.populations.base)) == len(second.populations.bases)


def test_exact_answers_come_back_unchanged():
    answer = sz.log_z(MODEL)
    assert answer.kind == "exact"
    assert sz.log_z(MODEL, more=answer) is answer


def test_what_cannot_be_continued_is_refused():
    answer = sz.log_z(MODEL, "annealing", population=8)
    for model in (1.01 * MODEL, sz.generators.complete(19, 0.3, seed=3)):
        with pytest.raises(OptionError, match="another model"):
            sz.log_z(model, "annealing", more=answer)
    with pytest.raises(OptionError, match="other given spins"):
        sz.log_z(MODEL, "annealing", given={0: 1}, more=answer)
    with pytest.raises(OptionError, match="'annealing', and this call of 'auto'"):
        sz.log_z(MODEL, more=answer)
    with pytest.raises(OptionError, match="no populations"):
        sz.log_z(MODEL, "bp", more=sz.log_z(MODEL, "bp"))
    with pytest.raises(OptionError, match="Estimate"):
        sz.log_z(MODEL, more=3.0)
    with pytest.raises(OptionError, match="one of them"):
        sz.log_z(MODEL, more=answer, checkpoint="a.json")
    with pytest.raises(OptionError, match="auto and annealing"):
        sz.log_z(MODEL, "bp", checkpoint="a.json")


def test_a_checkpoint_counts_the_whole_budget(tmp_path):
    file = tmp_path / "run.json"
    first = sz.log_z(MODEL, work=1e8, checkpoint=file, **OPTIONS)
    assert first == sz.log_z(MODEL, work=1e8, **OPTIONS)
    again = sz.log_z(MODEL, work=1e8, checkpoint=file, **OPTIONS)
    assert again.log_z == first.log_z  # the budget is spent
    assert again.populations.calls == 1
    larger = sz.log_z(MODEL, work=4e8, checkpoint=file, **OPTIONS)
    assert larger.std_error < 0.8 * first.std_error
    assert larger.populations.calls == 2
    assert 2e8 < larger.populations.operations < 6e8
    assert abs(larger.log_z - TRUTH) < 4.0 * larger.std_error
    with pytest.raises(OptionError, match="another model"):
        sz.log_z(1.1 * MODEL, work=1e9, checkpoint=file, **OPTIONS)
    with pytest.raises(OptionError, match="seed = 0, and this call 1"):
        sz.log_z(MODEL, work=1e9, seed=1, checkpoint=file, **OPTIONS)
    two = sz.Ising(field=[0.0] * 4, coupling=np.kron(np.eye(2), [[0, 0.3], [0.3, 0]]))
    with pytest.raises(OptionError, match="2 parts"):
        sz.log_z(two, exclude=["exact"], work=1e7, checkpoint=tmp_path / "parts.json")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"spectralz checkpoint": 1}'])
def test_a_file_that_is_no_checkpoint_is_refused_and_left_alone(tmp_path, content):
    file = tmp_path / "run.json"
    file.write_bytes(content)
    with pytest.raises(FormatError, match="no checkpoint"):
        sz.log_z(MODEL, work=1e7, checkpoint=file, **OPTIONS)
    assert file.read_bytes() == content


@pytest.mark.slow
def test_a_run_goes_on_from_any_of_its_files(tmp_path, monkeypatch):
    """Every part of a population is followed by a file; from each of these the run ends near the truth."""
    files, write = [], write_checkpoint

    def kept(path, values):
        write(path, values)
        files.append(path.read_bytes())

    monkeypatch.setattr(long_runs, "write_checkpoint", kept)
    monkeypatch.setattr(long_runs, "EVERY", 0.0)
    file = tmp_path / "run.json"
    whole = sz.log_z(MODEL, work=3e8, checkpoint=file, **OPTIONS)
    assert len(files) > 5
    for content in files[:: max(len(files) // 4, 1)]:
        file.write_bytes(content)
        before = read_checkpoint(file).populations
        found = sz.log_z(MODEL, work=3e8, checkpoint=file, **OPTIONS)
        assert abs(found.log_z - TRUTH) < 4.0 * found.std_error
        assert found.std_error < 3.0 * whole.std_error
        after = found.populations
        assert sum(after.size) >= sum(before.size)
        assert after.operations < 5e8
        groups = np.concatenate([table[:, 0] for table in after.log_z])
        assert len(np.unique(groups)) == len(groups)  # nothing counts twice


@pytest.mark.slow
def test_killed_runs_never_leave_a_damaged_file(tmp_path):
    """Forty kills at random moments, each run going on from the file of those before."""
    file = tmp_path / "run.json"
    code = (
        "import spectralz as sz; from spectralz.inference import long_runs; long_runs.EVERY = 0.02\n"
        "model = sz.generators.complete(20, 0.3, seed=3)\n"
        f"sz.log_z(model, budget=1e4, tol=1e-9, exclude={OPTIONS['exclude']!r}, checkpoint={str(file)!r})"
    )
    rng, sizes = np.random.default_rng(0), []
    for _ in range(40):
        process = subprocess.Popen([sys.executable, "-c", code], env=os.environ)
        if not sizes:
            while not file.exists() and process.poll() is None:
                time.sleep(0.05)
        time.sleep(float(rng.uniform(0.5, 4.0)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        populations = read_checkpoint(file).populations
        sizes.append(sum(populations.size))
        groups = np.concatenate([table[:, 0] for table in populations.log_z])
        assert len(np.unique(groups)) == len(groups)
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]
    kept = read_checkpoint(file)
    write_checkpoint(file, replace(kept, populations=replace(kept.populations, seconds=1e4)))
    found = sz.log_z(MODEL, budget=1e4, tol=1e-9, checkpoint=file, **OPTIONS)
    whole = sz.log_z(MODEL, work=1e9, **OPTIONS)
    assert abs(found.log_z - whole.log_z) < 4.0 * math.hypot(found.std_error, whole.std_error)
    assert abs(found.log_z - TRUTH) < 4.0 * found.std_error


def test_the_command_line_keeps_a_checkpoint(run):
    sz.write(MODEL, "model.npz")
    command = ["solve", "model.npz", "--work", "1e8", "--checkpoint", "run.json", "--json"]
    command += ["--exclude", ",".join(OPTIONS["exclude"])]
    code, out, _ = run(*command)
    first = json.loads(out)
    assert code == 0
    assert Path("run.json").exists()
    code, out, _ = run(*command)
    assert json.loads(out)["log_z"] == first["log_z"]
    code, _, err = run(*command, "--marginals")
    assert code != 0
    assert "--checkpoint keeps log Z" in err


def test_the_history_ends_with_the_answer():
    answer = sz.log_z(MODEL, work=1e8, **OPTIONS)
    seconds = [moment.seconds for moment in answer.history]
    assert seconds == sorted(seconds)
    last = answer.history[-1]
    assert (last.log_z, last.std_error) == (answer.log_z, answer.std_error)
    assert (last.lower, last.upper) == (answer.lower, answer.upper)
    assert all(moment.lower is not None for moment in answer.history)
    axes = answer.plot_history()
    assert axes.get_ylabel() == "log Z"
    assert sz.log_z(MODEL, "bp").history == ()
    assert sz.log_z(MODEL, "bp").plot_history().get_xlabel() == "seconds"
