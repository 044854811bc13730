"""The commands about the package itself: ``methods`` lists what there is, ``warm-up`` compiles it."""

from __future__ import annotations

import json

import spectralz as sz
from spectralz.cli.console import print_table, progress
from spectralz.cli.options import AsJson, first_line
from spectralz.show.tables import Table

__all__ = ["list_methods", "warm_up"]


def list_methods(as_json: AsJson = False) -> None:
    """List the methods with their options."""
    rows = [
        {"method": name, "what": first_line(method), "options": sz.result.plain(vars(method()))}
        for name, method in sz.METHODS.items()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    cells = ((row["method"], row["what"], "\n".join(f"{k} = {v}" for k, v in row["options"].items())) for row in rows)
    print_table(Table(headings=("method", "what it is", "options and their defaults"), rows=tuple(cells)))


def warm_up() -> None:
    """Compile everything now, for containers and measurements; otherwise what is needed is compiled when it is."""
    with progress():
        done = sz.warm_up()
    what = f"compiled {done.kernels} functions" if done.compiled else f"{done.kernels} functions were compiled before"
    where = f"they are kept in {done.folder}" if done.folder else "no folder to keep them in can be written to"
    print(f"{what}; {where}")
