"""The command that lists what there is: ``methods``."""

from __future__ import annotations

import json

import spectralz as sz
from spectralz.cli.console import print_table
from spectralz.cli.options import AsJson, first_line
from spectralz.show.tables import Table

__all__ = ["list_methods"]


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
