"""What several test files share: a clock that a test sets, listeners, processes to interrupt, models and results."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.progress import listening
from spectralz.parts.mean_field.structured import StructuredMeanField
from spectralz.parts.outcome import Outcome
from spectralz.portfolio.answers import Answer
from spectralz.report import Claim, Figure
from spectralz.sampling.engines.collapsed import CollapsedChains
from spectralz.sampling.engines.dense import DenseChains
from spectralz.sampling.engines.sparse import SparseChains
from spectralz.sweeps import Contestant, Row, Sweep
from spectralz.sweeps.rows import header, to_csv
from tests.reference import states

# --- time and progress ----------------------------------------------------------------------------------------------


class FakeClock:
    """Seconds that pass only where a test says so: ``step`` each time the clock is read, and what :meth:`advance` adds.

    Put it in the place of the clock of budgets by ``using_clock(FakeClock(...))``. Nothing waits, and what a budget
    buys no longer depends on the machine.
    """

    def __init__(self, step: float = 0.0) -> None:
        self.step = step
        self.time = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        self.advance(self.step)
        return self.time

    def advance(self, seconds: float) -> None:
        with self._lock:  # sweeps may be made in several threads
            self.time += seconds


def quadratic_on_spheres(extra):
    """Return C, V with rows of length 1, y and a gradient that is tangent at V; y is ``extra`` above dominance."""
    rng = np.random.default_rng(0)
    n, k = 12, 4
    C = rng.normal(size=(n, n))
    C += C.T
    V = rng.normal(size=(n, k))
    V /= np.linalg.norm(V, axis=1)[:, None]
    return C, V, np.abs(C).sum(axis=1) + extra, tangent_at(V, rng.normal(size=(n, k)))


def tangent_at(V, U):
    """Return the part of U whose rows are perpendicular to those of V, which have length 1."""
    return U - np.sum(U * V, axis=1)[:, None] * V


def count_blocks(monkeypatch, clock: FakeClock, seconds_per_entry: float) -> None:
    """Let the clock go on with the tables of blocks of mean field."""
    renew = StructuredMeanField._renew

    def renewed(self, number, beta=1.0):
        run = self._runs[number]
        clock.advance(seconds_per_entry * float((2.0 ** self._steps.width[run.begin : run.end]).sum()))
        return renew(self, number, beta)

    monkeypatch.setattr(StructuredMeanField, "_renew", renewed)


def count_sweeps(monkeypatch, clock: FakeClock, seconds_per_spin: float) -> None:
    """Let the clock go on with what annealing does: so many seconds for each spin of each state that is swept."""

    def counted(sweep):
        def swept(self, before, at, after, sweeps):
            n = self._engine.n if isinstance(self, CollapsedChains) else self._x.shape[1]
            clock.advance(seconds_per_spin * len(at) * sweeps * self.size * n)
            return sweep(self, before, at, after, sweeps)

        return swept

    for chains in (SparseChains, DenseChains, CollapsedChains):
        monkeypatch.setattr(chains, "sweep", counted(chains.sweep))


@contextmanager
def heard() -> Iterator[list[tuple[str, float]]]:
    """Collect what is reported inside the ``with`` block: tasks, and how far they have come."""
    told: list[tuple[str, float]] = []
    with listening(lambda task, fraction: told.append((task, fraction))):
        yield told


# --- parameters -----------------------------------------------------------------------------------------------------


def with_slow(cases, slow):
    """Return the cases of a parametrized test with those of ``slow`` marked, each of which must be a case."""
    cases = list(cases)
    assert all(case in cases for case in slow), f"of {slow}, some are no cases"
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) if case in slow else case
        for case in cases
    ]


# --- interrupts -----------------------------------------------------------------------------------------------------


@contextmanager
def interrupting(task: str, share: float = 0.0, error: BaseException | None = None) -> Iterator[None]:
    """Interrupt what is done inside the ``with`` block, once: when a task says that this share of it is done."""
    seen = []

    def tell(name: str, done: float) -> None:
        if name == task and done >= share and not seen:
            seen.append(done)
            raise error or KeyboardInterrupt

    with listening(tell):
        yield


def started(command, **options):
    """Start a process that an interrupt ends: tests in the background ignore SIGINT, and a child inherits that."""
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def wait_until(condition, seconds=30.0):
    """Look again and again until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.002)


def interrupted(process):
    """Interrupt a process, as a person would: numba may swallow an interrupt while it compiles, so again if need be."""
    try:
        for _ in range(4):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=15)
        pytest.fail("the process does not end")
    finally:
        process.kill()
        process.communicate()


# --- models ---------------------------------------------------------------------------------------------------------


def forest(n, seed, strength=1.0, cut=0.05, path=False):
    """A random forest: every spin is joined to an earlier one, or with probability ``cut`` to none."""
    rng = np.random.default_rng(seed)
    earlier = np.arange(n - 1) if path else np.array([rng.integers(0, i) for i in range(1, n)])
    name = rng.permutation(n)
    edges = np.column_stack([name[earlier], name[np.arange(1, n)]])[rng.random(n - 1) >= cut]
    J = rng.uniform(-2 * strength, 2 * strength, len(edges))
    return sz.Ising.from_edges(n, edges, J, rng.uniform(-1, 1, n), offset=0.75).shift_diagonal(0.125)


def scale_of(model):
    """What rounding errors are proportional to."""
    return max(1.0, np.abs(states.dense(model)).sum() + np.abs(model.field).sum())


# --- results that are made up ---------------------------------------------------------------------------------------


def answer(method, log_z, std_error, trusted, kind=sz.Kind.ESTIMATE, **bounds):
    status = sz.Status("made up")
    return Answer(
        method, Outcome(log_z=log_z, kind=kind, status=status, std_error=std_error, trusted=trusted, **bounds), 0.1
    )


def bracket(lower, upper):
    return sz.Bounds.best_of((sz.BoundsRow("mf", lower, None, 0.1, ""), sz.BoundsRow("sdp", None, upper, 0.1, "")), 0.2)


def verdicts(found):
    return {trial.method: trial.verdict for trial in found.tried}


def trial(method, verdict, **values):
    return sz.Trial(method=method, verdict=sz.Verdict(verdict), **values)


def tried_estimate(**changes):
    """An answer as auto gives it where nothing is exact."""
    tried = (
        trial("ep", "agrees", log_z=21.4, seconds=0.1, why="close to annealing"),
        trial("annealing", "chosen", log_z=21.4312, std_error=0.0123, seconds=3.1, why="the smallest error"),
        trial("states", "disagrees", log_z=19.0, std_error=0.2, seconds=1.0, why="missed most"),
        trial("mf", "bound", log_z=20.0, lower=20.0, seconds=0.1),
        trial("wmbe", "bound", upper=24.0, seconds=0.1),
        trial("bp", "not run"),
    )
    values = {
        "log_z": 21.4312,
        "kind": sz.Kind.ESTIMATE,
        "status": sz.Status("annealing, supported by ep"),
        "lower": 20.0,
        "upper": 24.0,
        "std_error": 0.0123,
        "seconds": 4.0,
        "method": sz.Auto(),
        "trusted": True,
        "tried": tried,
    }
    return sz.Estimate(**values | changes)


# --- rows and figures that are made up ------------------------------------------------------------------------------

VERSIONS = "spectralz 0.1.0, numpy 2.4.6, Python 3.11"
CONTESTANTS = (
    Contestant(label="BP-200", method="bp", options={"max_iter": 200}),
    Contestant(label="Algorithm 2", method="spectral"),
    Contestant(label="MF, restarted", method="mf", is_ours=True),
)
SIZES = {"BP-200": 0.9, "Algorithm 2": 0.02, "MF, restarted": 0.2}
SWEEP = Sweep(
    name="fig3a",
    contestants=CONTESTANTS,
    generator="complete",
    parameters={"n": 8},
    values=(0.5, 1.0, 10.0),
    repeats=3,
    seed=7,
)


def row(**values) -> Row:
    """A row of a run that went well; what is given replaces what is made up."""
    made_up = {
        "instance": "complete-1",
        "x": 1.0,
        "repeat": 0,
        "seed": 7,
        "n": 8,
        "edges": 28,
        "label": "BP-200",
        "method": "bp",
        "options": '{"max_iter": 200, "damping": 0.0}',
        "log_z": 5.5,
        "truth": 5.0,
        "error": 0.5,
        "kind": "estimate",
        "status": "converged",
        "converged": True,
        "lower": None,
        "upper": None,
        "std_error": None,
        "seconds": 0.25,
        "peak_mib": 120.0,
        "failure": "",
        "versions": VERSIONS,
    }
    return Row(**made_up | values)


def rows_of(sweep: Sweep) -> list[Row]:
    """Make up answers: the error grows with x and with the method's own size, and its sign alternates."""
    return [
        row(
            instance=task.instance,
            x=task.x,
            repeat=task.repeat,
            seed=task.seed,
            label=contestant.label,
            method=contestant.method,
            log_z=5.0 + error,
            error=error,
            seconds=0.01 * (place + 1),
        )
        for task in sweep.tasks()
        for place, contestant in enumerate(sweep.contestants)
        for error in [(-1) ** task.repeat * SIZES.get(contestant.label, 0.1) * task.x * (1 + 0.1 * task.repeat)]
    ]


def write_sweep(folder: Path, rows: list[Row], sweep: Sweep | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.csv").write_text(header() + to_csv(rows))
    if sweep is not None:
        (folder / "sweep.json").write_text(json.dumps(sweep.to_dict()))
    return folder


def draw_points(rows, axes):
    axes.plot([one.x for one in rows], [abs(one.error) for one in rows], "o")


def figure(sweep: Sweep = SWEEP, **values) -> Figure:
    made_up = {
        "name": sweep.name,
        "title": f"{sweep.name}: random graphs & strong coupling",
        "full": Sweep(**{**vars(sweep), "repeats": 100}),
        "quick": sweep,
        "draw": draw_points,
        "claims": (
            Claim(sentence="Algorithm 2 is best", check=lambda rows: ("Its mean |error| is 0.02 < 0.9.", True)),
            Claim(sentence="BP is better than <MF>", check=lambda rows: ("0.9 against 0.2.", False)),
        ),
        "notes": "The range of s is not in the text.",
    }
    return Figure(**made_up | values)


FIGURES = {"fig3a": figure()}


# --- pages ----------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Reads a page; a tag that is not closed in its turn is an error."""

    VOID = frozenset({"meta", "link", "img", "br", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names))
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.stack.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, f"</{tag}> closes another element, {self.getpos()}"

    def handle_data(self, data):
        if self.stack and self.stack[-1] not in ("style", "script"):
            self.text.append(data)
        if {"td", "th"} & set(self.stack):
            self.rows[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def drawings(self) -> list[ElementTree.Element]:
        """The drawings in the page, read as XML."""
        start = "data:image/svg+xml;base64,"
        sources = [image["src"] or "" for image in self.all("img")]
        return [ElementTree.fromstring(base64.b64decode(s.removeprefix(start))) for s in sources if s.startswith(start)]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())
