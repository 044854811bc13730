"""The commands about models themselves: ``info``, ``generate`` and ``convert``."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import spectralz as sz
from spectralz._support.options import bytes_in_words
from spectralz.cli.console import add_row, print_table, say, two_columns
from spectralz.cli.options import AsJson, EvidenceFile, ModelFile, OutFile, first_line
from spectralz.cli.outputs import check_output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["convert", "generate_app", "info"]

# A table entry or a state takes about this long on one core of a present-day machine.
SECONDS_PER_TERM = 6e-9


def info(file: ModelFile, evidence: EvidenceFile = None, as_json: AsJson = False) -> None:
    """Tell what a model is and what an exact answer would take, without solving it."""
    about = sz.describe(sz.read(file, evidence))
    if as_json:
        print(json.dumps({"file": str(file), **about}, indent=2, allow_nan=False))
        return
    table = two_columns()
    add_row(table, "spins", f"{about['spins']}")
    add_row(table, "edges", f"{about['edges']} (density {about['density']:.3g}, kept {about['storage']})")
    add_row(table, "degree", f"mean {about['degree_mean']:.3g}, largest {about['degree_max']}")
    add_row(
        table,
        "coupling |A|",
        f"mean {about['coupling_mean']:.4g}, largest {about['coupling_max']:.4g} (an edge counted once weighs J = 2 A)",
    )
    add_row(table, "field", f"mean size {about['field_mean']:.4g}, largest {about['field_max']:.4g}")
    add_row(table, "constant", f"{about['offset'] + about['trace']:.6g}")
    forest = ", a forest" if about["is_forest"] else ""
    add_row(table, "components", f"{about['components']}, the largest of {about['largest_component']} spins{forest}")
    add_row(table, "treewidth", _treewidth(about))
    add_row(table, "exact answer", _exact_cost(about))
    print_table(table)


def _treewidth(about: Mapping[str, Any]) -> str:
    low, high = about["treewidth_lower"], about["treewidth_upper"]
    if high is None:
        return f"{low} or more"
    return f"{low}" if low == high else f"between {low} and {high}"


def _exact_cost(about: Mapping[str, Any]) -> str:
    if about["exact_memory"] is None:
        return "out of reach: the widest table would not fit into any memory"
    seconds = about["exact_terms"] * SECONDS_PER_TERM
    time = (
        "under a second"
        if seconds < 1
        else f"about {seconds:.2g} s"
        if seconds < 1e4
        else f"about {seconds / 3600:.2g} h"
    )
    order = f" by {about['exact_order']} order" if about["exact_order"] else ""
    return f"{bytes_in_words(about['exact_memory'])} of tables{order}, {about['exact_terms']:.3g} terms, {time}"


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A model: .uai or .npz.", show_default=False)],
    target: OutFile,
    evidence: EvidenceFile = None,
) -> None:
    """Write a model in another format."""
    check_output(target, [source, evidence])
    model = sz.read(source, evidence)
    sz.write(model, target)
    say(f"wrote {target}: {model!r}")


def _generate_command(generator: Callable[..., sz.Ising]) -> Callable[..., None]:
    """Make a command whose options are the generator's parameters."""

    def command(out: Path, **parameters: Any) -> None:
        check_output(out)
        model = generator(**parameters)
        sz.write(model, out)
        say(f"wrote {out}: {model!r}")

    signature = inspect.signature(generator, eval_str=True)
    out = inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=OutFile)
    options = [
        parameter.replace(
            kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[parameter.annotation, typer.Option()]
        )
        for parameter in signature.parameters.values()
    ]
    command.__signature__ = inspect.Signature([out, *options])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in [out, *options]}
    command.__doc__ = first_line(generator)
    return command


generate_app = typer.Typer(
    help="Make a random or standard model from a seed and write it to a file.", no_args_is_help=True
)
for _name, _generator in sz.generators.GENERATORS.items():
    generate_app.command(_name)(_generate_command(_generator))
