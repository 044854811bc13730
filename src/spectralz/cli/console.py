"""What the commands print: tables and JSON on stdout, messages and progress on stderr.

JSON is one object, with the version that gave it and without numbers that JSON does not have. rich is imported where it
is used.
"""

from __future__ import annotations

import errno
import json
import math
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import spectralz as sz
from spectralz._support import clock
from spectralz._support.progress import known_so_far, listening
from spectralz.result import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import ProgressColumn, Task
    from rich.table import Table as RichTable
    from rich.text import Text

    from spectralz.cli.files import Problem
    from spectralz.show.tables import Table

# Assumed width of the screen when output goes to a file or a pipe; statuses are sentences.
PIPE_WIDTH = 140
# A bar that has been full once would stay full, although the next task of the same method begins at once.
ALMOST_DONE = 1.0 - 1e-6
# The error names a file that cannot be written, but not standard output.
CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
VERDICT_STYLES = {
    Verdict.CHOSEN: "bold green",
    Verdict.DISAGREES: "yellow",
    Verdict.NOT_RUN: "dim",
}


def console(stderr: bool = False) -> Console:
    """Return a console on stdout or stderr as they are now."""
    from rich.console import Console

    made = Console(stderr=stderr, soft_wrap=stderr)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPE_WIDTH
    return made


def has_unicode(screen: Console) -> bool:
    """Say whether lines and arrows can be printed."""
    return screen.encoding.lower().startswith("utf")


def plus_minus(screen: Console) -> str:
    """Return the sign between a number and its error."""
    return "±" if has_unicode(screen) else "+-"


def say(message: str) -> None:
    """Print a message on stderr."""
    console(stderr=True).print(message, highlight=False, markup=False)


def warn(sentence: str) -> None:
    """Print a warning on stderr."""
    console(stderr=True).print(f"warning: {sentence}", style="yellow", markup=False, highlight=False)


def say_error(sentence: str) -> None:
    """Print an error on stderr."""
    console(stderr=True).print(f"error: {sentence}", style="red", markup=False, highlight=False)


def sentence_of(error: Exception) -> str:
    """Return the sentence of an error; for an error of the system, the file and the reason."""
    if isinstance(error, OSError) and error.strerror is not None:
        place = "standard output" if error.filename is None and error.errno in CANNOT_WRITE else error.filename
        return error.strerror if place is None else f"{as_text(place)}: {error.strerror}"
    return str(error)


def as_text(path: object) -> str:
    r"""Return the name of a file as text that can be printed, drawn and written to a page; other bytes are marked.

    Examples
    --------
    >>> as_text("caf\udce9.uai")
    'caf�.uai'
    """
    return os.fsencode(str(path)).decode("utf-8", errors="replace")


def print_table(table: Table) -> None:
    """Print a table; to a file or a pipe without trailing blanks."""
    screen, drawn = console(), _drawn(table)
    if screen.is_terminal:
        screen.print(drawn, highlight=False)
        return
    with screen.capture() as captured:
        screen.print(drawn, highlight=False)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _drawn(table: Table) -> RichTable:
    """Return a table for rich. Cells are plain text: brackets in names and messages are not markup."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    if table.headings:
        drawn = RichTable(*table.headings, box=box.SIMPLE_HEAD, pad_edge=False)
    else:
        drawn = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        drawn.add_column(style="bold", no_wrap=True)
        drawn.add_column()
    styles = [VERDICT_STYLES.get(verdict) for verdict in table.verdicts] or [None] * len(table.rows)
    for cells, style in zip(table.rows, styles, strict=True):
        drawn.add_row(*map(Text, cells), style=style)
    return drawn


def print_json(answer: dict[str, Any]) -> None:
    """Print an object with the version first; numbers that are not finite become null."""
    print(json.dumps(_finite({"version": sz.__version__, **answer}), indent=2, allow_nan=False))


def print_about(problem: Problem, answer: Any, as_json: bool, show: Callable[[Any], None] = print) -> None:
    """Print which model it is and the answer, by ``show`` or as JSON."""
    if as_json:
        print_json({**problem.about(), **answer.to_dict()})
    else:
        print(f"{problem.source}: {problem.in_words}")
        show(answer)


def _finite(value: Any) -> Any:
    """Return the same with None instead of infinities and NaN.

    Examples
    --------
    >>> _finite({"lower": -math.inf, "rows": [1.5, math.nan]})
    {'lower': '-inf', 'rows': [1.5, None]}
    """
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "-inf" if value == -math.inf else None
    return value


@contextmanager
def progress(budget: float | None = None) -> Iterator[None]:
    """Show a progress bar on stderr, if that is a terminal, while the block runs.

    It shows the seconds that have passed and, with a ``budget``, how many there are in total.
    """
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    from rich.progress import Progress

    with Progress(*_columns(budget), console=screen, transient=True, get_time=lambda: clock.seconds()) as bar:
        task = bar.add_task("preparing", total=None)

        def show(name: str, fraction: float) -> None:
            bar.update(task, description=name + known_so_far(), total=1.0, completed=min(fraction, ALMOST_DONE))

        with listening(show):
            yield


def _columns(budget: float | None) -> list[ProgressColumn]:
    """Return the columns of a progress line; without a budget, also the estimated time left."""
    from rich import progress as bars
    from rich.text import Text

    class Elapsed(bars.ProgressColumn):
        """Return the seconds that have passed, by the clock of budgets, which leaves out compiling."""

        def render(self, task: Task) -> Text:
            return Text(elapsed_of(task.elapsed or 0.0, budget), style="progress.elapsed")

    columns = [bars.SpinnerColumn(), bars.TextColumn("{task.description}"), bars.BarColumn()]
    columns += [bars.TaskProgressColumn(), Elapsed()]
    return columns if budget is not None else [*columns, bars.TimeRemainingColumn()]


def elapsed_of(seconds: float, budget: float | None) -> str:
    """Return the time that has passed, and the total if it is known.

    Examples
    --------
    >>> elapsed_of(3.21, 10.0), elapsed_of(3.21, None), elapsed_of(754.0, None), elapsed_of(75.0, 3600.0)
    ('3.2 s of 10 s', '3.2 s', '12:34', '1:15 of 1:00:00')
    """
    return _duration(seconds, ".1f") + ("" if budget is None else f" of {_duration(budget, '.3g')}")


def _duration(seconds: float, number: str) -> str:
    if seconds < 60.0:
        return f"{seconds:{number}} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
