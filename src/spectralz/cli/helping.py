"""Help of the commands: examples as one would type them, and errors that belong to their command."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from spectralz.errors import shown

# In some releases of typer click is a separate package, in others a part of typer.
UsageError: type[Any] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "UsageError")

# Where a context keeps the command line as it was typed.
TYPED = "spectralz.typed"

F = TypeVar("F", bound="Callable[..., Any]")


def examples(*lines: str) -> Callable[[F], F]:
    """Attach the lines that a command's help shows under "Examples"; text after a ``#`` is a comment."""

    def remember(function: F) -> F:
        function.__dict__["examples"] = lines  # typer copies it to what it makes of the function
        return function

    return remember


def plain(text: str) -> str:
    r"""Escape text that a terminal would read as markup: help is plain text.

    Examples
    --------
    >>> print(plain("theta ~ U[-1, 1], A ~ U[low, high]"))
    theta ~ U[-1, 1], A ~ U\[low, high]
    """
    return re.sub(r"\[(?=[a-z#/@])", r"\\[", text)


def first_line(documented: Any) -> str:
    """Return the first line of a docstring without its markup, as help."""
    return re.sub(r":\w+:`([^`]*)`|``", r"\1", (inspect.getdoc(documented) or "").split("\n")[0])


class _WithExamples:
    """What commands and groups of them have in common."""

    callback: Callable[..., Any] | None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, remember them as they were typed, and attach the command to every error."""
        if ctx.parent is None:
            ctx.meta[TYPED] = [ctx.info_name, *args]
        try:
            parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        return parsed

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, then the examples, without wrapping or markup."""
        super().format_help(ctx, formatter)  # type: ignore[misc]
        lines = getattr(self.callback, "examples", ())
        if lines:
            formatter.write("\n".join(["Examples:", *(f"  {line}" for line in lines), ""]))


class Command(_WithExamples, TyperCommand):
    """A command."""


class Group(_WithExamples, TyperGroup):
    """Several commands under one name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name, or suggest a name that is close."""
        name, known = args[0], self.list_commands(ctx)
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            ctx.fail(f"no command is called {name!r}; {_hint(name, known)}known are {', '.join(known)}")
        return super().resolve_command(ctx, args)


def show_help_alone(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def usage_sentence(error: Any) -> str:
    """Return what is wrong with a command line, in the style of our own errors.

    ``error`` is what typer raises: its own sentences differ from one release to the next.
    """
    kind, message = type(error).__name__, str(error.format_message())
    if kind == "NoSuchOption":
        close = difflib.get_close_matches(error.option_name, error.possibilities or (), n=1)
        return f"no option is called {error.option_name!r}" + (f"; did you mean {close[0]!r}?" if close else "")
    parameter = getattr(error, "param", None)
    if parameter is None:
        return message[:1].lower() + message[1:].rstrip(".")
    name = _name(parameter)
    if kind == "MissingParameter":
        return f"the {parameter.param_type_name} {name} is missing"
    return f"{name} is {_value(error)}; it must be {_wanted(message)}"


def _hint(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))


def _value(error: Any) -> str:
    """Return the refused value, which is in the message in older releases and in the cause in newer ones."""
    quoted = re.match(r"'(.*)' is not a valid", error.message)
    if quoted:
        return shown(quoted[1])
    errors = getattr(error.__cause__, "errors", None)
    return shown(errors()[0]["input"]) if errors is not None else "something else"


def _wanted(message: str) -> str:
    if "integer" in message:
        return "a whole number"
    if "number" in message or "float" in message:
        return "a number"
    return message[:1].lower() + message[1:].rstrip(".")
