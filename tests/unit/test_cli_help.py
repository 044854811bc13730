"""Help, completion and errors of the command line: every example runs, every option is explained, one style."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

import spectralz as sz
import spectralz.sweeps
from spectralz.cli import app
from tests.helpers import row, with_slow, write_sweep

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
ROOT = typer.main.get_command(app)


def commands(group=ROOT, path=()):
    """Yield the words of every command, with what typer made of it, groups included."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


COMMANDS = dict(commands())
EXAMPLES = {path: getattr(command.callback, "examples", ()) for path, command in COMMANDS.items()}
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
PAGE_EXAMPLES = [line for block in BLOCKS for line in block.splitlines()]
LINES = dict.fromkeys([*(line for lines in EXAMPLES.values() for line in lines), *PAGE_EXAMPLES])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that examples name."""
    monkeypatch.chdir(tmp_path)
    sz.write(sz.generators.grid(3, 1.0, seed=0), "grid.uai")
    sz.write(sz.generators.complete(10, 0.2, seed=0), "glass.npz")
    Path("grid.evid").write_text("2 0 1 5 0")
    Path("formula.cnf").write_text("p cnf 8 2\n1 -2 3 0\nx4 5 -7 0\n")
    Path("weighted.cnf").write_text("p cnf 2 1\n1 2 0\nc p weight 1 1/3 0\n")
    Path("names.csv").write_text("a,b,0.5\nb,c,-1\nc,d,0.25\na,,0.5\n")
    Path("config.toml").write_text(
        'methods = ["mf"]\nstrengths = [0.5]\nrepeats = 1\n[model]\ngenerator = "complete"\nn = 4\n'
    )
    states = sz.sample(sz.generators.chain(n=4, strength=0.5), 300, seed=0)
    rows = "\n".join(",".join(map(str, row)) for row in ((states + 1) // 2).tolist())
    Path("data.csv").write_text(f"a,b,c,d\n{rows}\n")
    sz.write(sz.Ising.from_edges(4, [(0, 1)], [0.5], names=list("abcd")), "model.npz")
    np.save("states.npy", sz.sample(sz.generators.complete(10, 0.2, seed=0).scaled(0.7), 50, seed=1))
    Path("answers.csv").write_text(f"a,b,c,d\n,1,0,\n{rows}\n")
    Path("new.csv").write_text("b,a\n1,NA\n")
    Path("pairs.csv").write_text("a,b\nb,c\nc,d\n")
    Path("grids").mkdir()
    for number in range(11, 19):
        sz.write(sz.generators.grid(3, 1.0, seed=number), f"grids/Grids_{number}.uai")
    write_sweep(tmp_path / "quick" / "fig2c", [row()])
    real = spectralz.sweeps.run

    def quickly(sweep, out, **options):
        """Run the sweep of the example; a figure of the paper takes minutes, and tests of its own draw it."""
        return real(sweep, out, **options) if sweep.name == "config" else write_sweep(out, [row()]) / "rows.csv"

    monkeypatch.setattr(spectralz.sweeps, "run", quickly)
    monkeypatch.setattr(sz, "warm_up", lambda: spectralz.compilation.Compilation(kernels=3, compiled=0, folder=None))
    return tmp_path


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_examples_and_words_for_every_option(run, path):
    code, long_help, err = run(*path, "--help")
    assert (code, err) == (0, "")
    assert run(*path, "-h") == (0, long_help, "")
    shown = long_help.split("Examples:\n")[1].splitlines()
    assert shown == [f"  {line}" for line in EXAMPLES[path]]
    assert shown
    own = " ".join(["spectralz", *path])
    assert any(own in line for line in shown)
    for parameter in COMMANDS[path].params:
        assert parameter.help, f"{own} {parameter.name} is not explained"


# Pipes start processes. All of the paper's figures take longer than the other lines together.
SLOW_EXAMPLES = ("|", "paper all", "sweep config", "grid.uai -x sdp,trw", "-m search --states", "-m annealing -w")


@pytest.mark.parametrize(
    "line", with_slow(LINES, [line for line in LINES if any(words in line for words in SLOW_EXAMPLES)])
)
@pytest.mark.usefixtures("folder")
def test_every_example_runs(run, line):
    if "|" in line:
        ours = f'spectralz() {{ {shlex.quote(sys.executable)} -m spectralz "$@"; }}\nset -o pipefail\n{line}'
        done = subprocess.run(["bash", "-c", ours], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return
    program, *arguments = shlex.split(line, comments=True)
    assert program == "spectralz"
    code, out, err = run(*arguments)
    assert code == 0, err
    assert out or "wrote" in err


def test_without_arguments_there_is_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == run("-h")[1]
    assert len(EXAMPLES[()]) >= 3
    assert run("generate")[:2] == run("generate", "-h")[:2]


def test_short_version(run):
    assert run("-V") == run("--version") == (0, f"{sz.__version__}\n", "")


def long_and_short():
    """Return the long names that each short option has, with the commands."""
    found = {}
    for path, command in COMMANDS.items():
        for parameter in command.params:
            names = {name for name in parameter.opts if name.startswith("--")}
            for short in (name for name in parameter.opts if name.startswith("-") and name not in names):
                found.setdefault(short, {}).setdefault(max(names, key=len), []).append(" ".join(path))
    return found


def test_a_short_option_means_the_same_everywhere_and_the_page_has_it():
    found = {short: set(names) for short, names in long_and_short().items()}
    assert {short: names for short, names in found.items() if len(names) > 1} == {
        "-m": {"--method", "--methods"},
        "-n": {"--size", "--n"},
    }
    listed = {}
    for short, long in re.findall(r"^\| `(-\w)` \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE):
        listed.setdefault(short, set()).update(re.findall(r"--\w+", long))
    assert listed.pop("-h") == {"--help"}
    assert listed == found


def test_the_page_lists_every_command_and_who_has_which_option():
    text = PAGE.read_text()
    for path in COMMANDS:
        if len(path) == 1:
            assert re.search(rf"^\|.*`{path[0]}[ `]", text, re.MULTILINE), path
    readers = {"solve", "info", "compare", "bounds", "curve", "map", "count", "sample", "convert"}
    for names, who in re.findall(r"^\| (?:`-\w`)? ?\| ([^|]*) \| [^|]* \| ([^|]*) \|$", text, re.MULTILINE):
        owners = readers if who == "all that read a model" else set(who.split(", "))
        for name in set(re.findall(r"--\w+", names)) - {"--help", "--version", "--verbose"}:
            having = {
                path[0] for path, command in COMMANDS.items() if path and any(name in p.opts for p in command.params)
            }
            assert having <= owners, name
            assert having == owners or "`, `" in names, name


def completed(words):
    """Return what the Tab key offers after these words, the last of which is begun."""
    environment = {
        **os.environ,
        "_SPECTRALZ_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["spectralz", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "spectralz"], env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done.stdout.split()


COMPLETED = [
    (["comp"], ["compare"]),
    (["compare", "x.uai", "--methods", "exact,mb"], ["exact,mbe"]),
    (["solve", "-m", "bp", "--set", "da"], ["damping="]),
    (["solve", "gri"], []),  # which leaves it to the shell: files
    (["generate", "rank"], ["rank-one"]),
    (["solve", "--bud"], ["--budget"]),
    (["solve", "x.uai", "--method", "w"], ["wmbe"]),
    (["solve", "--set", "tol"], ["tol="]),
    (["info", "x", "--format", "np"], ["npz"]),
    (["convert", "x", "y", "--to", "ua"], ["uai"]),
    (["paper", "fig3"], [f"fig3{letter}" for letter in "abcdef"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "offered"), COMPLETED)
def test_the_tab_key_completes(words, offered):
    assert completed(words) == offered


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown(shell):
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "spectralz", "--show-completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "_SPECTRALZ_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("line", "sentence", "about"),
    [
        ("solv", "no command is called 'solv'; did you mean 'solve'? known are solve, info", "spectralz"),
        ("generate gird", "no command is called 'gird'; did you mean 'grid'? known are", "spectralz generate"),
        ("solve", "the argument FILE is missing", "spectralz solve"),
        ("sample grid.uai", "the argument OUT is missing", "spectralz sample"),
        ("generate complete m.npz", "the option --n is missing", "spectralz generate complete"),
        ("solve m.uai --budgte 3", "no option is called '--budgte'; did you mean '--budget'?", "spectralz solve"),
        ("solve m.uai --qqq", "no option is called '--qqq'", "spectralz solve"),
        ("solve m.uai -b soon", "--budget is 'soon'; it must be a number", "spectralz solve"),
        ("sample m.uai x.npy -n 1.5", "--size is '1.5'; it must be a whole number", "spectralz sample"),
        ("solve m.uai --method", "option '--method' requires an argument", "spectralz solve"),
        ("solve m.uai n.uai", "got unexpected extra argument", "spectralz solve"),
        ("--frob", "no option is called '--frob'", "spectralz"),
    ],
)
def test_a_mistake_in_the_line_is_an_error_like_any_other(run, line, sentence, about):
    code, out, err = run(*line.split())
    first, second = err.splitlines()
    assert (code, out) == (2, "")
    assert first.startswith(f"error: {sentence}")
    assert second == f"try: {about} -h"


def test_errors_are_red_on_a_terminal(monkeypatch, run):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for line in ("solve", "solve nowhere.uai"):
        assert run(*line.split())[2].startswith("\x1b[31merror: ")
