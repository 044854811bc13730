"""The commands about the package itself: ``methods`` lists the methods, ``warm-up`` compiles everything."""

from __future__ import annotations

import spectralz as sz
from spectralz.cli.console import print_json, print_table, progress
from spectralz.cli.helping import examples, first_line
from spectralz.cli.options import AsJson
from spectralz.show.tables import Table


@examples("spectralz methods", "spectralz methods --json")
def list_methods(as_json: AsJson = False) -> None:
    """List the methods with their options."""
    rows = [
        {"method": name, "what": first_line(method), "options": sz.result.plain(vars(method()))}
        for name, method in sz.METHODS.items()
    ]
    if as_json:
        print_json({"methods": rows})
        return
    cells = ((row["method"], row["what"], "\n".join(f"{k} = {v}" for k, v in row["options"].items())) for row in rows)
    print_table(Table(headings=("method", "what it does", "options and their defaults"), rows=tuple(cells)))


@examples("spectralz warm-up", "spectralz warm-up --json")
def warm_up(as_json: AsJson = False) -> None:
    """Compile everything now, for containers and measurements; otherwise functions are compiled on first use."""
    with progress():
        done = sz.warm_up()
    if as_json:
        print_json({"kernels": done.kernels, "compiled": done.compiled, "folder": done.folder})
        return
    what = f"compiled {done.kernels} functions" if done.compiled else f"{done.kernels} functions were compiled before"
    where = f"they are kept in {done.folder}" if done.folder else "there is no writable folder to keep them in"
    print(f"{what}; {where}")
