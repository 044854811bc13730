"""The commands about models themselves: ``info``, ``generate`` and ``convert``."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import spectralz as sz
from spectralz.cli.console import print_table, say
from spectralz.cli.options import AsJson, EvidenceFile, ModelFile, OutFile, first_line
from spectralz.cli.outputs import check_output
from spectralz.show import tables

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["convert", "generate_app", "info"]


def info(file: ModelFile, evidence: EvidenceFile = None, as_json: AsJson = False) -> None:
    """Tell what a model is and what an exact answer would take, without solving it."""
    about = sz.describe(sz.read(file, evidence))
    if as_json:
        print(json.dumps({"file": str(file), **about}, indent=2, allow_nan=False))
        return
    print_table(tables.description(about))


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
