"""The commands that run many models: ``paper``, ``sweep`` and ``report``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from spectralz.cli import options as opts
from spectralz.cli.console import progress, say
from spectralz.cli.helping import examples
from spectralz.errors import OptionError

Workers = Annotated[
    int | None, typer.Option(metavar="N", help="Processes at once, with one thread each; one per core if not given.")
]
DaskAddress = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Send the work to this Dask scheduler instead (extra dask).")
]


@examples(
    "spectralz paper fig2a --quick",
    "spectralz paper all --quick --out quick   # all figures, and a report: quick/report.html",
    "spectralz paper fig3f --uai grids         # with the UAI 2014 grids themselves, if you have them",
)
def paper(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE", help="fig2a ... fig4, or all.", show_default=False, autocompletion=opts.offered_figures
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for rows, pictures and report.")
    ] = Path("paper"),
    quick: Annotated[
        bool, typer.Option("--quick", "-q", help="Few models and values: minutes instead of hours.")
    ] = False,
    uai: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with the UAI 2014 grids, for fig3f.")] = None,
    edge_convention: Annotated[
        str,
        typer.Option(
            metavar="text|code",
            help="text: couplings as the paper prints them; code: half of that, as in its code.",
        ),
    ] = "text",
    workers: Workers = None,
    dask: DaskAddress = None,
) -> None:
    """Regenerate a figure of the paper, or all, and write the report; run it again to continue after a stop."""
    from spectralz.paper import FIGURES, fig3f_uai
    from spectralz.sweeps import run

    known = dict(FIGURES) if uai is None else {**FIGURES, "fig3f": fig3f_uai.with_files(uai)}
    if figure != "all" and figure not in known:
        raise OptionError(f"no figure is called {figure!r}; known are {', '.join(known)}, and all")
    for name in known if figure == "all" else [figure]:
        setting = known[name].quick if quick else known[name].full
        if not (setting.files or setting.instances):  # these count an edge once already
            setting = replace(setting, edge_convention=edge_convention)
        with progress():
            rows = run(setting, out / name, workers=workers, dask=dask)
        _say_written(rows)
    report(out)


@examples(
    "spectralz sweep config.toml",
    "spectralz sweep config.toml --out results --workers 1   # run it again to continue after a stop",
)
def sweep(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="What to run, a .toml file.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for rows and report; the sweep's name if not given."),
    ] = None,
    workers: Workers = None,
    dask: DaskAddress = None,
) -> None:
    """Run any methods on any models, resumably, and write the report."""
    from spectralz.sweeps import read_config, run

    wanted = read_config(config)
    folder = Path(wanted.name) if out is None else out
    with progress():
        rows = run(wanted, folder, workers=workers, dask=dask)
    _say_written(rows)
    report(folder)


@examples("spectralz report quick   # writes quick/report.html")
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder written by paper or sweep.", show_default=False)
    ],
) -> None:
    """Write one self-contained HTML page about everything in a folder, with pictures and tables beside it."""
    from spectralz.paper import FIGURES
    from spectralz.report import write_report

    print(write_report(folder, FIGURES))


def _say_written(path: Path) -> None:
    """Print where the rows are, and how many of them have no answer."""
    from spectralz.sweeps import read_rows

    rows = read_rows(path)
    failures = sum(bool(row.failure) for row in rows)
    rest = f"; {failures} of {len(rows)} runs have no answer, the column failure says why" if failures else ""
    say(f"wrote {path}{rest}")
