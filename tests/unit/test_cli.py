"""The command line as a person meets it: what is printed where, what is written, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from html import escape

import numpy as np
import pytest

import spectralz as sz
import spectralz.sweeps
from spectralz._support import interrupts
from spectralz.cli.options import method_options
from spectralz.errors import OptionError
from spectralz.io import read_evidence
from spectralz.paper import FIGURES
from tests.helpers import interrupted, row, started, trial, tried_estimate, write_sweep


@pytest.fixture
def grid(tmp_path):
    model = sz.generators.grid(4, 1.0, seed=0)
    sz.write(model, tmp_path / "grid.uai")
    return model


def test_solve_prints_the_answer_on_stdout(run, grid):
    code, out, err = run("solve", "grid.uai")
    assert code == 0
    assert err == ""
    assert f"log Z      {sz.log_z(grid).log_z:.12g}\n" in out
    for word in ("exact", "certified", "status", "eliminated 16 spins"):
        assert word in out


def test_solve_as_json(run, grid):
    code, out, _ = run(
        "solve", "grid.uai", "--json", "--method", "exact", "--set", "order=banded", "--set", "max_memory=1GiB"
    )
    answer = json.loads(out)
    assert code == 0
    assert answer["log_z"] == pytest.approx(sz.log_z(grid).log_z, rel=1e-13)
    options = {"algorithm": "auto", "order": "banded", "max_memory": 2**30, "max_terms": 2**36}
    assert answer["options"] == {**options, "search": None, "max_sliced": None, "threads": None}
    assert answer["details"]["orders"] == ["banded"]


def test_brackets_in_names_are_not_markup(run, grid, tmp_path):
    (tmp_path / "[bold]grid.uai").write_bytes((tmp_path / "grid.uai").read_bytes())
    assert "[bold]grid.uai" in run("solve", "[bold]grid.uai")[1]
    assert "[bold]nowhere.uai" in run("solve", "[bold]nowhere.uai")[2]


def test_a_list_of_numbers_can_be_set(run, tmp_path):
    sz.write(sz.generators.rank_one(6, 0.2, seed=0), tmp_path / "m.npz")
    code, out, _ = run("solve", "m.npz", "--method", "low_rank", "--set", "step=0.5,", "--json")
    assert code == 0
    assert json.loads(out)["options"]["step"] == [0.5]


def test_solve_with_evidence_writes_answers_for_all_variables(run, grid, tmp_path):
    (tmp_path / "grid.evid").write_text("2 0 1 5 0")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, _ = run("solve", "grid.uai", "--evidence", "grid.evid", "--pr", "a.PR", "--mar", "a.MAR", "--json")
    assert code == 0
    fixed = grid.condition(read_evidence("grid.evid", 16))
    assert json.loads(out)["log_z"] == pytest.approx(sz.log_z(fixed).log_z, rel=1e-12)
    kind, value = (tmp_path / "a.PR").read_text().split()
    assert kind == "PR"
    assert float(value) == pytest.approx(sz.log_z(fixed).log_z / np.log(10), rel=1e-12)
    words = (tmp_path / "a.MAR").read_text().split()
    table = np.array(words[2:], float).reshape(16, 3)
    assert words[:2] == ["MAR", "16"]
    assert table[0].tolist() == [2, 0, 1]
    assert table[5].tolist() == [2, 1, 0]
    free = [i for i in range(16) if i not in (0, 5)]
    assert np.allclose(table[free, 1:], sz.marginals(fixed).probability, atol=1e-11)
    assert all(path.read_bytes() == content for path, content in before.items())


def test_info(run, grid):
    code, out, _ = run("info", "grid.uai")
    assert code == 0
    for line in (
        "spins         16\n",
        "edges         24 (density 0.2, kept sparse)\n",
        "degree        mean 3, largest 4\n",
        "components    1, the largest of 16 spins\n",
        "treewidth     between 2 and 4\n",
        "exact answer  320 B of tables by min-degree order, 127 terms, under a second\n",
    ):
        assert line in out
    assert json.loads(run("info", "grid.uai", "--json")[1])["treewidth_upper"] == 4


def test_info_where_exact_is_out_of_reach(run, tmp_path, clock):
    clock.step = 0.02
    sz.write(sz.generators.complete(100, 1.0, seed=0), tmp_path / "big.npz")
    code, out, _ = run("info", "big.npz")
    assert code == 0
    assert re.search("treewidth +99\n", out)
    assert "out of reach" in out
    code, out, _ = run("solve", "big.npz", "--budget", "1")
    assert code == 0
    assert "estimate" in out
    assert "annealing" in out


@pytest.mark.usefixtures("clock")
def test_compare(run, grid, tmp_path):
    code, out, _ = run("compare", "grid.uai")
    assert code == 0
    names = re.findall(r"^ ?(\w+) ", out, re.MULTILINE)
    assert names == ["method", *(name for name in sz.METHODS if name != "auto")]
    rows = json.loads(run("compare", "grid.uai", "--methods", "exact,auto", "--json")[1])["rows"]
    assert [row["method"] for row in rows] == ["exact", "exact"]
    assert [row["name"] for row in rows] == ["exact", "auto"]  # what was asked for
    assert next(iter(rows[0])) == "name"
    assert re.search("^ ?BP-200 ", run("compare", "grid.uai", "--methods", "BP-200")[1], re.MULTILINE)
    sz.write(sz.generators.complete(70, 1.0, seed=0), tmp_path / "big.npz")
    code, out, _ = run("compare", "big.npz", "--methods", "exact,mf")
    assert code == 0
    assert re.search("^ ?exact .*refused: exact is out of reach", out, re.MULTILINE)
    assert re.search("^ ?mf .*lower bound", out, re.MULTILINE)


@pytest.mark.parametrize("kind", sz.generators.GENERATORS)
def test_generate_makes_what_python_makes(run, kind, tmp_path):
    from tests.unit.test_generators import SMALL

    arguments = []
    for name, value in SMALL[kind].items():
        arguments += [f"--{name}"] if value is True else [f"--{name}", value]
    code, out, err = run("generate", kind, *arguments, "m.npz")
    assert (code, out) == (0, "")
    wanted, written = sz.generators.GENERATORS[kind](**SMALL[kind]), sz.read(tmp_path / "m.npz")
    assert err.startswith(f"wrote m.npz: {type(wanted).__name__}(")
    assert np.array_equal(written.field, wanted.field)
    assert all(map(np.array_equal, written.higher, wanted.higher))


def test_convert_both_ways(run, grid, tmp_path):
    assert run("convert", "grid.uai", "grid.npz")[0] == 0
    assert run("convert", "grid.npz", "again.uai")[0] == 0
    assert np.allclose(sz.read(tmp_path / "again.uai").field, grid.field, atol=1e-14)


def test_sample_writes_what_python_draws(run, tmp_path):
    model = sz.generators.rank_one(8, 0.3, seed=0)
    sz.write(model, tmp_path / "m.npz")
    for name, read in (("x.npy", np.load), ("x.csv", lambda path: np.loadtxt(path, delimiter=","))):
        code, out, err = run("sample", "m.npz", name, "--size", 20, "--seed", 3)
        assert (code, out) == (0, "")
        assert "20 states of 8 spins" in err
        assert np.array_equal(read(tmp_path / name), sz.sample(model, 20, seed=3))


def test_sample_keeps_the_columns_of_observed_spins(run, grid, tmp_path):
    (tmp_path / "grid.evid").write_text("2 0 1 5 0")
    assert run("sample", "grid.uai", "x.npy", "--size", 50, "--evidence", "grid.evid")[0] == 0
    x = np.load(tmp_path / "x.npy")
    assert x.shape == (50, 16)
    assert np.all(x[:, 0] == 1)
    assert np.all(x[:, 5] == -1)
    free = [i for i in range(16) if i not in (0, 5)]
    assert np.array_equal(x[:, free], sz.sample(sz.read("grid.uai", "grid.evid"), 50))


def test_methods_lists_all(run):
    code, out, _ = run("methods")
    assert code == 0
    assert re.findall(r"^ ?(\w+) ", out, re.MULTILINE) == ["method", *sz.METHODS]


def test_version(run):
    assert run("--version") == (0, f"{sz.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "nowhere.uai"], "nowhere.uai: No such file"),
        (["solve", "."], "[Ii]s a directory|Permission denied"),
        (["solve", "grid.uai", "--method", "magic"], "known are"),
        (["solve", "grid.uai", "--set", "order"], "key=value"),
        (["solve", "grid.uai", "--method", "exact", "--set", "order=upwards"], "it must be one of"),
        (["solve", "grid.uai", "--set", "color=red"], "no option 'color'"),
        (["solve", "grid.uai", "--pr", "no/such/folder.PR"], "does not exist"),
        (["solve", "grid.uai", "--mar", "."], "this is a folder"),
        (["solve", "grid.uai", "--pr", "grid.uai"], "never overwritten"),
        (["solve", "grid.uai", "--evidence", "grid.uai"], "MARKOV"),
        (["solve", "grid.uai", "--pr", "x", "--mar", "./x"], "the same file"),
        (["solve", "grid.uai", "--set", "max_memory=1", "--set", "max_memory=2"], "given twice"),
        (["solve", "grid.uai", "--plot", "x.txt"], r"a picture is \.png, \.svg or \.pdf"),
        (["solve", "grid.uai", "--plot", "no/such/folder.png"], "does not exist"),
        (["solve", "grid.uai", "--plot", "grid.uai"], "never overwritten"),
        (["solve", "grid.uai", "--plot", "x.png", "--pr", "./x.png"], "--pr and --plot name the same file"),
        (["solve", "grid.uai", "--method", "exact", "--budget", "3"], "no option 'budget'"),
        (["solve", "grid.uai", "--method", "exact", "--exclude", "ep"], "no option 'exclude'"),
        (["solve", "grid.uai", "--budget", "soon"], "--budget is 'soon'; it must be a number"),
        (["solve", "grid.uai", "--budget", "3", "--set", "budget=4"], "both given"),
        (["solve", "grid.uai", "--work", "1e9", "--set", "work=1e9"], "both given"),
        (["solve", "grid.uai", "--budget", "3", "--work", "1e9"], "give one of them"),
        (["solve", "grid.uai", "--work", "-1"], "work is -1"),
        (["bounds", "grid.uai", "--budget", "3", "--work", "1e9"], "give one of them"),
        (["solve", "grid.uai", "--threads", "0"], "--threads is 0; it must be a whole number, 1 or more"),
        (["sample", "grid.uai", "x.npy", "--threads", "-1"], "--threads is -1"),
        (["compare", "grid.uai", "--threads", "two"], "--threads is 'two'; it must be a whole number"),
        (["convert", "grid.uai", "./grid.uai"], "never overwritten"),
        (["convert", "grid.uai", "grid.txt"], "no suffix|suffix '.txt'"),
        (["sample", "grid.uai", "x.txt"], r"written to \.npy or \.csv"),
        (["sample", "grid.uai", "x.npy", "--method", "low_rank"], "rank of at most 3"),
        (["generate", "complete", "--n", "-3", "--strength", "1", "--seed", "0", "m.npz"], "cannot be negative"),
        (["compare", "grid.uai", "--methods", "exact,foo"], "no method is called 'foo'"),
        (["solve", "grid.uai", "--no-such-flag"], "no option is called '--no-such-flag'"),
        (["generate", "complete", "m.npz"], "the option --n is missing"),
        (["frobnicate"], "no command is called 'frobnicate'; known are solve, info"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(run, grid, arguments, message):
    before = sorted(os.listdir("."))
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert re.search(message, err)
    assert "Traceback" not in err
    assert sorted(os.listdir(".")) == before


def test_strict_turns_an_unconverged_run_into_exit_code_1(run, grid, monkeypatch):
    real = sz.log_z

    def unfinished(*arguments, **options):
        return replace(real(*arguments, **options), status=sz.Status("gave up", converged=False))

    monkeypatch.setattr(sz, "log_z", unfinished)
    assert run("solve", "grid.uai")[0] == 0
    assert run("solve", "grid.uai", "--strict")[0] == 1


def as_process(arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "spectralz", *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.mark.slow
def test_a_pipe_gets_plain_text(grid, tmp_path):
    done = as_process(["solve", "grid.uai"], cwd=tmp_path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr == ""


def on_terminal(arguments, cwd, **env):
    """Return what a command writes to a terminal; a pipe would get no colors in any case."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "spectralz", *arguments],
        cwd=cwd,
        env={**environment, "TERM": "xterm", **env},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    with suppress(OSError):  # which is how Linux says that nobody writes any more
        while part := os.read(ours, 4096):
            written += part
    os.close(ours)
    assert process.wait() == 0
    return written.decode()


@pytest.mark.slow
@pytest.mark.usefixtures("grid")
def test_no_color_is_respected(tmp_path):
    color = re.compile("\x1b\\[[0-9;]*(3[0-7]|9[0-7])m")
    assert color.search(on_terminal(["solve", "grid.uai"], tmp_path))
    plain = on_terminal(["solve", "grid.uai"], tmp_path, NO_COLOR="1")
    assert not color.search(plain)
    assert "certified" in plain


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly(grid, tmp_path):
    command = f"{sys.executable} -m spectralz solve grid.uai --json | true"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), pytest.param("pdf", b"%PDF", marks=pytest.mark.slow)]
)
def test_compare_draws_a_picture(run, tmp_path, suffix, start):
    sz.write(sz.generators.complete(6, 0.5, seed=0), tmp_path / "m.npz")
    out = tmp_path / f"compare.{suffix}"
    code, _, err = run("compare", str(tmp_path / "m.npz"), "--plot", str(out))
    assert code == 0, err
    assert out.read_bytes().startswith(start)


def test_compare_refuses_a_picture_it_cannot_write_before_any_work(run, tmp_path):
    sz.write(sz.generators.complete(6, 0.5, seed=0), tmp_path / "m.npz")
    code, _, err = run("compare", str(tmp_path / "m.npz"), "--plot", str(tmp_path / "compare.txt"))
    assert code == 2
    assert ".png, .svg or .pdf" in err
    assert not (tmp_path / "compare.txt").exists()


def test_sweep_runs_resumes_and_reports(run, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'methods = ["mf", "BP-200"]\nstrengths = [0.5]\nrepeats = 2\n[model]\ngenerator = "complete"\nn = 5\n'
    )
    code, out, err = run("sweep", "mine.toml", "--workers", "1")
    assert code == 0, err
    assert out.strip() == "mine/report.html"
    rows = (tmp_path / "mine" / "rows.csv").read_bytes()
    assert rows.count(b"\n") == 5
    assert (tmp_path / "mine" / "report.html").read_text().count("BP-200") >= 2
    code, _, _ = run("sweep", "mine.toml")
    assert code == 0
    assert (tmp_path / "mine" / "rows.csv").read_bytes() == rows


def test_paper_and_report_refuse_what_is_not_there(run, tmp_path):
    code, _, err = run("paper", "fig9")
    assert code == 2
    assert "no figure is called 'fig9'; known are fig2a, fig2b" in err
    code, _, err = run("report", "nowhere")
    assert code == 2
    assert "nowhere" in err
    code, _, err = run("paper", "fig3f", "--uai", "nowhere")
    assert code == 2
    assert not (tmp_path / "paper").exists()


@pytest.mark.parametrize(
    "arguments", [("report", "out"), ("paper", "fig2c", "--out", "out"), ("sweep", "mine.toml", "--out", "out")]
)
def test_every_report_knows_the_figures_of_the_paper(run, tmp_path, monkeypatch, arguments):
    (tmp_path / "mine.toml").write_text('methods = ["mf"]\nstrengths = [0.5]\nmodel = {generator = "grid", side = 2}')
    rows = write_sweep(tmp_path / "out" / "fig2c", [row()]) / "rows.csv"
    monkeypatch.setattr(spectralz.sweeps, "run", lambda *args, **options: rows)
    code, _, err = run(*arguments)
    assert code == 0, err
    assert escape(FIGURES["fig2c"].title) in (tmp_path / "out" / "report.html").read_text()


def test_an_interrupted_sweep_says_how_to_go_on(run, tmp_path, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt("3 of 9 models are done; the same command continues from there")

    monkeypatch.setattr(spectralz.sweeps, "run", stop)
    code, _, err = run("paper", "fig2a", "--quick")
    assert code == 130
    assert "continues from there" in err


@pytest.fixture
def answer(monkeypatch):
    """Let ``solve`` find a given answer."""

    def find(**changes):
        monkeypatch.setattr(sz, "log_z", lambda *_, **__: tried_estimate(**changes))

    return find


def test_solve_shows_what_was_tried_and_the_bracket(run, grid, answer):
    answer(checked_by=("ep",))
    code, out, err = run("solve", "grid.uai")
    assert (code, err) == (0, "warning: states disagrees with this answer\n")
    assert "log Z      21.431 ± 0.012 (error)\n" in out
    assert "trust      trusted, checked by ep\n" in out
    assert "20 <= log Z <= 24 (width 4)" in out
    for line in (
        "ep +21.4 +- +0.1 +agrees +close to annealing",
        r"annealing +21\.431 +0\.012 +3\.1 +chosen +the smallest error",
        "mf +>= 20 +- +0.1 +bound",
        "wmbe +<= 24 +- +0.1 +bound",
        "bp +- +- +0 +not run",
    ):
        assert re.search(line, out)
    assert "status     annealing, supported by ep\n" in out
    assert re.search("\nlower 20.00 ├─+.*●.*─+┤ upper 24.00\n$", out)


def test_solve_shows_no_bracket_of_an_exact_answer(run, grid):
    assert "lower" not in run("solve", "grid.uai")[1]


def test_solve_warns_where_methods_disagree(run, grid, answer):
    answer()
    code, out, err = run("solve", "grid.uai")
    assert (code, err) == (0, "warning: states disagrees with this answer\n")
    code, out, err = run("solve", "grid.uai", "--json")
    assert err.startswith("warning:")
    assert [row["method"] for row in json.loads(out)["tried"] if row["verdict"] == "disagrees"] == ["states"]
    answer(tried=(trial("a", "disagrees"), trial("b", "disagrees")))
    assert run("solve", "grid.uai")[2] == "warning: a, b disagree with this answer\n"
    answer(tried=(trial("annealing", "chosen"),))
    assert run("solve", "grid.uai")[2] == ""


@pytest.mark.slow
def test_solve_prints_ascii_where_the_output_has_no_more(tmp_path):
    sz.write(sz.generators.complete(12, 0.2, seed=0), tmp_path / "m é.npz")
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = as_process(["solve", "m é.npz", "--method", "spectral"], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\nlower [0-9.]+ [-|]*\*-+\| upper [0-9.]+\n", done.stdout)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("SVG", b"<?xml"), ("pdf", b"%PDF")])
def test_solve_draws_a_picture(run, grid, answer, tmp_path, suffix, start):
    answer(tried=(trial("annealing", "chosen", log_z=21.4312, std_error=0.0123), trial("mf", "bound", lower=20.0)))
    code, _, err = run("solve", "grid.uai", "--plot", f"answer.{suffix}")
    assert (code, err) == (0, f"wrote answer.{suffix}\n")
    assert (tmp_path / f"answer.{suffix}").read_bytes().startswith(start)


def test_shortcuts_are_options():
    assert method_options([], None, None) == {}
    assert method_options(["max_memory=3"], 2.5, "ep, states,") == {
        "max_memory": 3,
        "budget": 2.5,
        "exclude": ["ep", "states"],
    }
    assert method_options(["exclude=ep,states"], 0.0, None) == {"exclude": "ep,states", "budget": 0.0}
    assert method_options([], None, "") == {"exclude": []}
    with pytest.raises(OptionError, match="--exclude and --set exclude were both given"):
        method_options(["exclude=ep"], None, "bp")


def test_an_interrupted_answer_is_shown_written_and_marked(run, grid, answer, tmp_path):
    answer(interrupted=True)
    code, out, err = run("solve", "grid.uai", "--pr", "a.PR", "--plot", "a.svg", "--strict")
    assert code == 130
    assert "21.431 ± 0.012" in out
    assert err.endswith("interrupted: this is the best answer so far\n")
    assert (tmp_path / "a.PR").exists()
    assert (tmp_path / "a.svg").exists()


@pytest.mark.parametrize("arguments", [["solve", "grid.uai", "--pr", "a.PR"], ["sample", "grid.uai", "x.npy"]])
def test_an_interrupt_is_one_line_and_exit_code_130(run, grid, monkeypatch, tmp_path, arguments):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sz, "log_z", stop)
    monkeypatch.setattr(sz, "sample", stop)
    before = signal.getsignal(signal.SIGINT)
    assert run(*arguments) == (130, "", "interrupted\n")
    assert os.listdir(tmp_path) == ["grid.uai"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5, 1.0, 1.5])
def test_an_interrupt_at_any_time_shows_no_traceback(tmp_path, delay):
    sz.write(sz.generators.complete(30, 1.0, seed=0), tmp_path / "m.npz")
    command = [sys.executable, "-m", "spectralz", "solve", "m.npz", "--method", "mf", "--set", "restarts=10000000"]
    process = started([*command, "--pr", "a.PR"], cwd=tmp_path)
    time.sleep(delay)
    out, err = interrupted(process)
    assert out == ""
    assert os.listdir(tmp_path) == ["m.npz"]
    # Before interrupts.py has set its handler, which takes some milliseconds, nothing of ours can be quiet.
    hardly_begun = "spectralz" not in err or "import start" in err or "interrupts.py" in err
    if "Traceback" not in err or not hardly_begun:
        # Killed by the signal, which a shell calls 130 too: Python does so if the interrupt came within an exec.
        assert process.returncode in (130, -signal.SIGINT)
        assert err in ("", "interrupted\n")


def test_a_request_to_terminate_is_an_interrupt_with_another_exit_code(monkeypatch):
    monkeypatch.setattr(interrupts, "_came", [])
    assert not interrupts.has_come()
    assert interrupts.exit_code() == 130
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with pytest.raises(KeyboardInterrupt):
            interrupts._interrupt(number, sys._getframe())
        assert interrupts.exit_code() == code
    assert interrupts.has_come()


def test_an_interrupt_waits_until_the_compiler_is_done(monkeypatch):
    sent = []
    monkeypatch.setattr(interrupts, "_came", [])
    monkeypatch.setattr(interrupts, "_send_again", sent.append)
    code = "def call(function, *args):\n    function(*args, sys._getframe())\n"
    inside = {"sys": sys}
    exec(compile(code, os.path.join("site-packages", "numba", "core", "caching.py"), "exec"), inside)
    inside["call"](interrupts._interrupt, signal.SIGTERM)
    assert sent == [signal.SIGTERM]
    assert interrupts.exit_code() == 143
    monkeypatch.setattr(interrupts, "MOST_DELAYS", 1)
    with pytest.raises(KeyboardInterrupt):  # but not for ever
        inside["call"](interrupts._interrupt, signal.SIGTERM)


def test_an_import_that_an_interrupt_breaks_is_an_interrupt(run, monkeypatch):
    def broken(*args, **options):
        raise ImportError("numba._devicearray failed to import")

    sz.write(sz.generators.complete(3, 1.0, seed=0), "glass.npz")
    monkeypatch.setattr(sz, "describe", broken)
    with pytest.raises(ImportError, match="devicearray"):
        run("info", "glass.npz")
    monkeypatch.setattr(interrupts, "_came", [signal.SIGINT])
    assert run("info", "glass.npz")[::2] == (130, "interrupted\n")


@pytest.mark.slow
def test_sigterm_ends_a_command_with_the_best_answer(tmp_path):
    sz.write(sz.generators.complete(100, 1.0, seed=0), tmp_path / "m.npz")
    command = [sys.executable, "-m", "spectralz", "map", "m.npz", "--budget", "60"]
    process = started(command, cwd=tmp_path)
    time.sleep(8.0)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 143, err
    assert "heaviest state" in out
    assert "Traceback" not in err


@pytest.mark.slow
def test_where_interrupts_are_ignored_they_stay_ignored(grid, tmp_path):
    command = [sys.executable, "-m", "spectralz", "solve", "grid.uai"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=-1, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    )
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert b"exact" in process.communicate(timeout=60)[0]
    assert process.returncode == 0


def test_work_gives_the_same_answer_in_any_number_of_threads(run, grid):
    def less_seconds(text):
        return re.sub(r'"seconds": [^,}\n]*', "", text)

    for command in (["solve", "--exclude", "exact", "--work", "1e7"], ["bounds", "--work", "1e6"]):
        printed = [run(command[0], "grid.uai", *command[1:], "--json", "--threads", count)[1] for count in "12"]
        assert '"lower"' in printed[0]
        assert less_seconds(printed[0]) == less_seconds(printed[1])


def test_sample_and_compare_take_work_and_threads(run, grid, tmp_path):
    assert run("sample", "grid.uai", "x.npy", "--size", "5", "--work", "1e8", "--threads", "1")[0] == 0
    assert run("sample", "grid.uai", "y.npy", "--size", "5", "--budget", "1", "--threads", "2")[0] == 0
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.load(tmp_path / "y.npy"))
    assert run("compare", "grid.uai", "--methods", "mf,BP-200", "--threads", "2")[0] == 0


@pytest.mark.usefixtures("clock")
def test_bounds_prints_a_row_for_each_method_and_the_bracket(run, grid):
    code, out, err = run("bounds", "grid.uai", "--budget", "1", "--exclude", "trw, sdp")
    assert code == 0
    assert err == ""
    for name in ("trivial", "mf", "convex_mf", "wmbe"):
        assert re.search(rf"^ ?{name} ", out, re.MULTILINE)
    assert not re.search(r"^ ?trw ", out, re.MULTILINE)
    low, high = map(float, re.search(r"(\S+) <= log Z <= (\S+) \(width", out).groups())
    assert low - 1e-9 <= sz.log_z(grid).log_z <= high + 1e-9  # twelve digits are printed


@pytest.mark.usefixtures("clock")
def test_bounds_as_json(run, grid):
    code, out, _ = run("bounds", "grid.uai", "--budget", "1", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["lower"] <= sz.log_z(grid).log_z <= answer["upper"]
    assert {row["method"] for row in answer["rows"]} >= {"trivial", "mf", "sdp", "convex_mf", "trw", "wmbe"}


def test_bounds_with_a_level_show_an_interval_beside_what_is_proven(run, grid):
    code, out, err = run("bounds", "grid.uai", "--work", "1e8", "--exclude", "exact", "--level", "0.999")
    assert (code, err) == (0, "")
    proven, probable, how = out.splitlines()[-3:]
    assert re.search(r"\(proven, width", proven)
    low, high = map(float, re.match(r"(\S+) <= log Z <= (\S+) \(with probability 99.9%, width", probable).groups())
    assert low <= sz.log_z(grid).log_z <= high
    assert how.startswith("by ")
    code, out, _ = run("bounds", "grid.uai", "--work", "1e6", "--level", "0.5", "--seed", "3", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["interval"]["level"] == 0.5
    assert answer["lower"] <= answer["interval"]["low"] <= answer["interval"]["high"] <= answer["upper"]
    assert answer["interval_status"]


@pytest.mark.parametrize("level", ["0", "1", "1.5"])
def test_a_level_that_is_none_is_refused(run, grid, level):
    code, _, err = run("bounds", "grid.uai", "--level", level)
    assert code == 2
    assert "it must be a number above 0 and below 1, such as 0.999" in err


@pytest.mark.usefixtures("clock")
def test_bounds_that_are_interrupted_are_printed(run, grid, monkeypatch):
    def interrupted(model, allowance):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setitem(sz.portfolio.bracket.BOUNDERS, "wmbe", interrupted)
    code, out, err = run("bounds", "grid.uai", "--budget", "1")
    assert code == 130
    assert "<= log Z <=" in out
    assert "interrupted" in err


def test_bounds_refuses_unknown_names(run, grid):
    code, _, err = run("bounds", "grid.uai", "--exclude", "bp")
    assert code == 2
    assert "known are exact, mf, bethe, states, sdp" in err


def test_sample_says_where_states_are_not_to_be_trusted(run, tmp_path):
    sz.write(sz.generators.complete(40, 0.05, seed=0), tmp_path / "model.npz")
    code, _, err = run("sample", "model.npz", "states.npy", "--size", "5", "--method", "states")
    assert code == 0
    assert err.startswith("warning: samples are drawn from the states found, which hold only 0% of P(x)")
    assert np.load(tmp_path / "states.npy").shape == (5, 40)


def test_solve_warns_where_nothing_is_to_be_trusted(run, grid, answer):
    status = sz.Status("no method trusts itself", converged=False)
    answer(status=status, trusted=False, tried=(trial("annealing", "chosen"), trial("ep", "not trusted")))
    code, _, err = run("solve", "grid.uai")
    assert code == 0
    assert err == "warning: this answer is not to be trusted; a larger --budget or --work may help\n"
    assert run("solve", "grid.uai", "--strict")[0] == 1


def test_an_interrupt_that_compiled_code_drops_comes_again(monkeypatch):
    import ctypes

    monkeypatch.setattr(sys, "unraisablehook", interrupts.raise_lost_interrupt)
    monkeypatch.setattr(interrupts, "_came", [])
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        callback()  # its error is dropped
        for _ in range(500):
            time.sleep(0.01)


def test_an_interrupted_command_ends_with_its_exit_code(monkeypatch):
    ended = []
    monkeypatch.setattr(interrupts.os, "_exit", ended.append)
    interrupts.end_at_once(130)  # a test is not the command line
    monkeypatch.setattr(interrupts, "_ours", True)
    interrupts.end_at_once(0)
    interrupts.end_at_once(143)
    assert ended == [143]
