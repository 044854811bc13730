"""The commands about models themselves: ``info``, ``generate`` and ``convert``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

import spectralz as sz
from spectralz.cli import options as opts
from spectralz.cli.console import as_text, print_json, print_table, say, warn
from spectralz.cli.files import check_output, load
from spectralz.cli.helping import Command, Group, examples, first_line, plain, show_help_alone
from spectralz.errors import OptionError
from spectralz.io import loses_names
from spectralz.io.files import STANDARD
from spectralz.model import Model
from spectralz.show import tables

To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="NAME",
        help=f"Format to write, if the file name does not say it: {', '.join(opts.WRITABLE)}.",
        autocompletion=opts.offered_formats_to_write,
    ),
]


@examples(
    "spectralz info grid.uai",
    "spectralz info names.csv -g a=+1 --json",
)
def info(
    file: opts.ModelFile,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
    as_json: opts.AsJson = False,
) -> None:
    """Describe a model and what an exact answer would take, without solving it."""
    problem = load(file, evidence, given, beta, format)
    about = sz.describe(problem.model, given=problem.given)
    if as_json:
        print_json({**problem.about(), **about})
        return
    print_table(tables.description(about))


@examples(
    "spectralz convert grid.uai grid.npz",
    "spectralz convert grid.uai given.npz -e grid.evid   # the model of the free spins",
    "spectralz convert glass.npz cold.uai --beta 2",
    "spectralz convert glass.npz - --to uai | spectralz info -",
)
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A model; - reads standard input.", show_default=False)],
    target: opts.OutFile,
    to: To = None,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
) -> None:
    """Write a model in another format; with evidence, the model of the free spins."""
    _check_target(target, to, [source, evidence])
    problem = load(source, evidence, given, beta, format)
    model = problem.model.condition(problem.given) if problem.given else problem.model
    _write(model.simplest(), target, to)


def _write(model: Model, target: Path, to: str | None) -> None:
    """Write a model and, unless it goes to a pipe, say so."""
    sz.write(model, target, format=to)
    if loses_names(model, target, format=to):
        warn("this format has no place for the names of spins, which are now 0, 1, ...; .json, .csv and .npz keep them")
    if str(target) != STANDARD:
        say(f"wrote {as_text(target)}: {model!r}")


def _check_target(target: Path, to: str | None, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse, before any work is done, a file that cannot be written, or a pipe without a format."""
    if str(target) != STANDARD:
        check_output(target, inputs)
    elif to is None:
        raise OptionError(f"standard output has no suffix; give the format, such as --to {opts.WRITABLE[0]}")


# Values for the examples of generators, by the name or otherwise the type of a parameter without default.
EXAMPLE_VALUES: dict[Any, str] = {"n": "20", "side": "4", "strength": "0.5", "seed": "0", int: "3", float: "0.5"}


def _generate_command(name: str, generator: Callable[..., Model]) -> Callable[..., None]:
    """Make a command whose options are the generator's parameters."""

    def command(out: Path, to: str | None = None, **parameters: Any) -> None:
        _check_target(out, to)
        _write(generator(**parameters), out, to)

    parameters = list(inspect.signature(generator, eval_str=True).parameters.values())
    words = sz.generators.parameter_help(generator)
    options = [
        inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=opts.OutFile),
        *(_option(parameter, words.get(parameter.name, "")) for parameter in parameters),
        inspect.Parameter("to", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=To),
    ]
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in options}
    command.__doc__ = plain(first_line(generator))
    return examples(_example(name, parameters))(command)


def _option(parameter: inspect.Parameter, text: str) -> inspect.Parameter:
    """Return the command-line option for a parameter of a generator."""
    names = ["--n", "-n"] if parameter.name == "n" else []
    declared = typer.Option(*names, help=plain(text))
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[parameter.annotation, declared])


def _example(name: str, parameters: list[inspect.Parameter]) -> str:
    """Return a call with all parameters that have no default."""
    needed = (parameter for parameter in parameters if parameter.default is inspect.Parameter.empty)
    values = {one.name: EXAMPLE_VALUES.get(one.name, EXAMPLE_VALUES.get(one.annotation)) for one in needed}
    options = [f"--{parameter.replace('_', '-')} {value}" for parameter, value in values.items()]
    return " ".join([f"spectralz generate {name}", *options, "model.npz"])


generate_app = typer.Typer(
    cls=Group,
    help="Make a random or standard model from a seed and write it to a file.",
    invoke_without_command=True,
)
for _name, _generator in sz.generators.GENERATORS.items():
    generate_app.command(_name, cls=Command)(_generate_command(_name, _generator))


@generate_app.callback()
@examples(
    "spectralz generate grid --side 20 --strength 1 --seed 0 grid.uai",
    "spectralz generate complete -n 12 --strength 0.2 --seed 0 - --to uai | spectralz solve -",
    "spectralz generate grid -h   # the options of a grid",
)
def _generate(ctx: typer.Context) -> None:
    show_help_alone(ctx)
