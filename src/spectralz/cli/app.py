"""The application: its commands in the order of ``--help``, and how it ends, by an error or an interrupt too."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

import spectralz as sz
from spectralz._support import interrupts
from spectralz.cli.console import console, say
from spectralz.cli.experiments import paper, report, sweep
from spectralz.cli.helping import Command, Group, UsageError, examples, show_help_alone, usage_sentence
from spectralz.cli.listing import list_methods, warm_up
from spectralz.cli.models import convert, generate_app, info
from spectralz.cli.solving import bounds, compare, sample, solve
from spectralz.errors import SpectralzError, is_interrupt

__all__ = ["app", "main"]


class _Commands(Group):
    """The commands; an interrupt of any of them is a line and exit code 130."""

    def invoke(self, ctx: Any) -> Any:
        try:
            interrupts.raise_on_interrupt()
            return super().invoke(ctx)
        except (
            KeyboardInterrupt,
            SystemError,
        ) as stopped:  # here, since releases of typer differ in what they make of it
            if not is_interrupt(stopped):
                raise
            say(str(stopped) if isinstance(stopped, KeyboardInterrupt) and str(stopped) else "interrupted")
            raise typer.Exit(interrupts.INTERRUPTED) from None
        finally:
            interrupts.end_on_interrupt()


app = typer.Typer(
    cls=_Commands,
    help="Partition functions of pairwise binary models, and how far each answer can be trusted.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(generate_app, name="generate")
for _command in (solve, info, compare, bounds, sample, convert, paper, sweep, report):
    app.command(cls=Command)(_command)
app.command("methods", cls=Command)(list_methods)
app.command("warm-up", cls=Command)(warm_up)


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
) -> None:
    if version:
        print(sz.__version__)
        raise typer.Exit
    show_help_alone(ctx)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors that have a way out end in a sentence and exit code 2, not in a traceback."""
    try:
        _replace_unprintable()
        code = app(args=arguments, prog_name="spectralz", standalone_mode=False)
    except UsageError as error:
        _say_error(usage_sentence(error))
        say(f"try: {error.ctx.command_path if error.ctx else 'spectralz'} -h")
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has gone; so has the need for it. Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (SpectralzError, OSError) as error:
        _say_error(_sentence(error))
        sys.exit(2)
    except MemoryError:
        _say_error("the machine has too little memory for this")
        sys.exit(2)
    sys.exit(code)


def _replace_unprintable() -> None:
    """Print a question mark for what the encoding of the output does not have, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _say_error(sentence: str) -> None:
    console(stderr=True).print(f"error: {sentence}", style="red", markup=False, highlight=False)
