"""What cannot be written: the answer is printed all the same, then the error, and a reader that goes is no error."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import spectralz as sz
from spectralz.cli import main
from spectralz.io import files

FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="has no device that is always full")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with the model m.uai; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    sz.write(sz.generators.grid(3, 1.0, seed=0), "m.uai")

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call


def full_disk(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("flag", ["--pr", "--mar", "--plot", "--html"])
@pytest.mark.parametrize("json_too", [False, True])
def test_solve_prints_the_answer_where_a_file_cannot_be_written(run, monkeypatch, tmp_path, flag, json_too):
    name = {"--plot": "a.png", "--html": "a.html"}.get(flag, "a.txt")
    answer = sz.log_z(sz.read("m.uai"), "exact").log_z
    monkeypatch.setattr(files.os, "replace", full_disk)
    code, out, err = run("solve", "m.uai", "-m", "exact", flag, name, *(["--json"] if json_too else []))
    assert code == 2
    assert err.splitlines()[-1] == f"error: {name}: No space left on device"
    assert json.loads(out)["log_z"] == answer if json_too else f"{answer:.8g}"[:-1] in out
    assert os.listdir(tmp_path) == ["m.uai"]


@needs_full
def test_one_file_that_cannot_be_written_keeps_no_other_from_being_written(run, tmp_path):
    (tmp_path / "full").symlink_to(FULL)
    code, out, err = run("solve", "m.uai", "-m", "exact", "--pr", FULL, "--mar", "a.MAR", "--plot", "a.svg")
    assert (code, "log Z" in out) == (2, True)
    assert err.splitlines()[-1] == f"error: {FULL}: No space left on device"
    assert (tmp_path / "a.MAR").read_text().startswith("MAR\n9 ")
    assert (tmp_path / "a.svg").exists()


def test_every_file_that_cannot_be_written_is_told(run, monkeypatch):
    monkeypatch.setattr(files.os, "replace", full_disk)
    code, _, err = run("solve", "m.uai", "-m", "exact", "--pr", "a.PR", "--mar", "a.MAR", "--html", "a.html")
    assert code == 2
    assert [line.split(":")[1].strip() for line in err.splitlines() if line.startswith("error")] == [
        "a.PR",
        "a.MAR",
        "a.html",
    ]


@pytest.mark.parametrize("flag", ["--plot", "--html"])
def test_compare_prints_its_table_where_a_file_cannot_be_written(run, monkeypatch, flag):
    monkeypatch.setattr(files.os, "replace", full_disk)
    name = {"--plot": "a.png", "--html": "a.html"}[flag]
    code, out, err = run("compare", "m.uai", "-m", "mf,exact", flag, name)
    assert code == 2
    assert "exact" in out
    assert err.splitlines()[-1] == f"error: {name}: No space left on device"


def test_states_that_cannot_be_written_are_an_error(run, monkeypatch):
    monkeypatch.setattr(files.os, "replace", full_disk)
    code, out, err = run("sample", "m.uai", "x.npy", "--size", "3", "--json")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "error: x.npy: No space left on device"


def test_a_folder_without_permission_is_refused_before_any_work(run, monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda _, mode: mode != os.W_OK)
    monkeypatch.setattr(sz, "log_z", lambda *_, **__: pytest.fail("work was done"))
    code, _, err = run("solve", "m.uai", "--pr", "a.PR")
    assert code == 2
    assert "cannot be written to" in err


# --------------------------------------------------------------------------- standard output, in a process of its own


def shell(tmp_path, line):
    """Run a line of bash in which ``spectralz`` is ours; return exit codes of its parts, and stderr."""
    ours = f'spectralz() {{ "{sys.executable}" -m spectralz "$@"; }}\n{line}\necho "${{PIPESTATUS[0]}}" >code'
    done = subprocess.run(["bash", "-c", ours], cwd=tmp_path, capture_output=True, text=True, check=False)
    return int((tmp_path / "code").read_text()), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("line", ["methods", "methods --json", "--help", "solve -h", "solve m.uai --json --marginals"])
def test_a_reader_that_goes_is_no_error(run, tmp_path, line):
    assert shell(tmp_path, f"spectralz {line} | true") == (0, "")


@pytest.mark.slow
def test_an_error_is_one_whoever_reads_it(run, tmp_path):
    assert shell(tmp_path, "spectralz solve nowhere.uai 2>&1 | true")[0] == 2


@pytest.mark.slow
def test_files_are_written_where_nobody_reads_the_answer(run, tmp_path):
    assert shell(tmp_path, "spectralz solve m.uai --pr a.PR | true")[0] == 0
    assert (tmp_path / "a.PR").exists()


@pytest.mark.slow
@needs_full
@pytest.mark.parametrize("line", ["methods", "solve m.uai", "convert m.uai - --to uai"])
def test_standard_output_that_is_full_is_an_error(run, tmp_path, line):
    assert shell(tmp_path, f"spectralz {line} >{FULL}") == (2, "error: standard output: No space left on device\n")


@pytest.mark.slow
def test_standard_streams_may_be_closed(run, tmp_path):
    assert shell(tmp_path, "spectralz methods >&-") == (0, "")
    code, err = shell(tmp_path, "spectralz convert m.uai - --to uai >&-")
    assert (code, err) == (2, "error: standard output: it is closed; give the name of a file\n")
    code, err = shell(tmp_path, "spectralz info - <&-")
    assert (code, err) == (2, "error: standard input: it is closed; give the name of a file\n")


# --------------------------------------------------------------------------------------------------- names and numbers


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere want names to be text")
@pytest.mark.parametrize("command", [["solve", "-m", "exact"], ["compare", "-m", "mf,exact"]])
@pytest.mark.parametrize(
    "output", [[], ["--json"], ["--plot", "a\udce9.png"], ["--plot", "a.svg"], ["--html", "a\udce9.html"]]
)
def test_names_of_files_need_not_be_text(run, tmp_path, command, output):
    os.rename("m.uai", "caf\udce9.uai")
    code, out, err = run(command[0], "caf\udce9.uai", *command[1:], *output)
    assert code == 0, err
    assert "caf" in out
    if len(output) > 1:
        content = (tmp_path / output[1]).read_bytes()
        assert content
        if output[0] == "--html":
            assert "caf\N{REPLACEMENT CHARACTER}.uai" in content.decode()


LONG = "9" * 5000
CUBIC = ["--strength", "1", "--seed", "0", "x.npz"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["solve", "m.uai", "-m", "spectral", "-s", "diagonal=[[1,2],[3]]"], "list of finite numbers"),
        (["solve", "m.uai", "-m", "low_rank", "-s", "step=((1,2),(3,))"], "a number above 0, or a list"),
        (["solve", "m.uai", "-m", "mbe", "-s", "order=[[1,2],[3]]"], "names each spin from 0 once"),
        (["solve", "m.uai", "-m", "mf", "-s", f"tol={LONG}"], "above 0"),
        (["solve", "m.uai", "-m", "mf", "-s", f"tol={LONG[:400]}"], "is too large"),
        (["solve", "m.uai", "-m", "ep", "-s", f"damping={LONG[:400]}"], "is too large"),
        (["solve", "m.uai", "-m", "mbe", "-s", f"max_memory={LONG}"], "whole number"),
        (["solve", "m.uai", "-m", "annealing", "-s", "sweeps=1e20"], "1000000000000 or less"),
        (["solve", "m.uai", "-m", "states", "-s", "quenches=1e20"], "1000000000000 or less"),
        (["solve", "m.uai", "-s", "budget=" + "(" * 1000], "must be a number"),
        (["solve", "m.uai", "--beta", LONG], "finite number"),
        (["solve", "m.uai", "--given", f"{LONG}=+1"], "named by"),
        (["generate", "complete", "--n", LONG[:20], "--strength", "1", "--seed", "0", "x.npz"], "at most 1e+08"),
        (["generate", "complete", "--n", LONG, "--strength", "1", "--seed", "0", "x.npz"], "whole number"),
        (["generate", "cubic", "--rows=9999999", "--columns=9999999", "--layers=9999999", *CUBIC], "1e+21 spins"),
    ],
)
def test_values_beyond_all_measure_are_refused_in_a_short_sentence(run, line, sentence):
    code, out, err = run(*line)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err) < 400


def test_more_threads_than_any_machine_has_are_as_many_as_there_can_be(run):
    assert run("solve", "m.uai", "-m", "spectral", "--threads", LONG[:20])[0] == 0


@pytest.mark.parametrize("line", ["repeats = 99999999999", f"{LONG} = 1", f"name = {LONG[:4000]}"])
def test_a_configuration_beyond_all_measure_is_refused_in_a_short_sentence(run, tmp_path, line):
    text = f'{line}\nmethods = ["bp"]\nstrengths = [0.5]\n[model]\ngenerator = "grid"\nside = 3\n'
    (tmp_path / "s.toml").write_text(text)
    code, _, err = run("sweep", "s.toml")
    assert code == 2
    assert len(err) < 400
    assert sorted(os.listdir(tmp_path)) == ["m.uai", "s.toml"]
