"""The application: its commands in the order of ``--help``, those about the package, and how it ends in any case."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

import spectralz as sz
from spectralz._support import interrupts
from spectralz._support.settings import using_settings
from spectralz.cli.console import print_json, print_table, progress, say, say_error, sentence_of
from spectralz.cli.experiments import paper, report, sweep
from spectralz.cli.fitting import fit
from spectralz.cli.helping import Command, Group, UsageError, examples, first_line, show_help_alone, usage_sentence
from spectralz.cli.models import convert, generate_app, info
from spectralz.cli.options import AsJson
from spectralz.cli.questions import count, curve, map_command, predict, temperature
from spectralz.cli.solving import bounds, compare, sample, solve
from spectralz.errors import SpectralzError, is_broken_pipe, is_interrupt
from spectralz.show.tables import Table


class _Commands(Group):
    """The commands; an interrupt prints one line and ends with exit code 130, a request to terminate with 143."""

    def invoke(self, ctx: Any) -> Any:
        try:
            interrupts.raise_on_interrupt()
            return super().invoke(ctx)
        # Handled here, since releases of typer treat it differently.
        except (KeyboardInterrupt, SystemError, ImportError) as stopped:
            if not is_interrupt(stopped) and not interrupts.has_come():
                raise
            say(str(stopped) if isinstance(stopped, KeyboardInterrupt) and str(stopped) else "interrupted")
            raise typer.Exit(interrupts.exit_code()) from None
        finally:
            interrupts.end_on_interrupt()


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


app = typer.Typer(
    cls=_Commands,
    help="Partition functions of binary models, and how far each answer can be trusted.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(generate_app, name="generate")
_commands: dict[str, Callable[..., None]] = {
    "solve": solve,
    "info": info,
    "compare": compare,
    "bounds": bounds,
    "curve": curve,
    "temperature": temperature,
    "map": map_command,
    "count": count,
    "sample": sample,
    "fit": fit,
    "predict": predict,
    "convert": convert,
    "paper": paper,
    "sweep": sweep,
    "report": report,
    "methods": list_methods,
    "warm-up": warm_up,
}
for _name, _command in _commands.items():
    app.command(_name, cls=Command)(_command)


@app.callback()
@examples(
    "spectralz generate grid --side 10 --strength 1 --seed 0 grid.uai   # make a model, or bring your own",
    "spectralz info grid.uai                                            # what it is, what exact would take",
    "spectralz solve grid.uai                                           # log Z, and how far to trust it",
    "spectralz solve -h                                                 # more examples: every command has some",
)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and stop.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say what is compiled, also where stderr is no terminal.")
    ] = False,
) -> None:
    ctx.with_resource(using_settings(verbose=verbose))
    if version:
        print(sz.__version__)
        raise typer.Exit
    show_help_alone(ctx)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors that the user can fix end in a sentence and exit code 2, not in a traceback."""
    try:
        _replace_unprintable()
        code = app(args=arguments, prog_name="spectralz", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # now, while an error can still be reported
        interrupts.end_at_once(code or 0)
    except UsageError as error:
        _fail(usage_sentence(error), f"try: {error.ctx.command_path if error.ctx else 'spectralz'} -h")
    except (BrokenPipeError, SystemExit) as ended:
        # Nobody reads the output any more, which is no error; typer and rich would end with exit code 1.
        if not is_broken_pipe(ended):
            raise
        _drop_output()
        sys.exit(0)
    except (SpectralzError, OSError) as error:
        _drop_output()
        _fail(sentence_of(error))
    except MemoryError:
        _fail("this machine has too little memory for this")
    sys.exit(code)


def _fail(sentence: str, *advice: str) -> NoReturn:
    """Print what is wrong, if it can be printed, and end."""
    with suppress(OSError, SystemExit):
        say_error(sentence)
        for line in advice:
            say(line)
    _drop_output()
    sys.exit(2)


def _drop_output() -> None:
    """Discard output that cannot be written; otherwise Python would report it once more at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _replace_unprintable() -> None:
    """Print a question mark for characters that the encoding of the output does not have, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
