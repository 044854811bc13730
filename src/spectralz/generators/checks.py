"""What generators share: checked parameters, streams of random numbers, kinds of couplings, help for parameters."""

from __future__ import annotations

import inspect
import math
import operator
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError, shown
from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from numpy.typing import NDArray


# More spins than this fill the memory of any machine, and their pairs overflow.
MOST_SPINS = 10**8


def checked_count(value: Any, name: str) -> int:
    """Return a number of spins, or of something that is no more than the spins: a whole number, 0 or more."""
    count = checked_whole(value, name)
    if count > MOST_SPINS:
        raise OptionError(f"{name} is {shown(count)}; a model has at most {MOST_SPINS:.0e} spins")
    return count


def checked_spins(*sides: int) -> int:
    """Return the number of spins of a lattice with these sides."""
    n = math.prod(sides)
    if n > MOST_SPINS:
        raise OptionError(
            f"a lattice of {' x '.join(map(str, sides))} has {n:.3g} spins; a model has at most {MOST_SPINS:.0e}"
        )
    return n


def checked_whole(value: Any, name: str) -> int:
    """Return a whole number, 0 or more."""
    try:
        count = operator.index(value)
    except TypeError:
        raise OptionError(f"{name} is {shown(value)}; it must be a whole number") from None
    if count < 0:
        raise OptionError(f"{name} is {shown(count)}; it cannot be negative")
    return count


def checked_pairs(n: Any) -> int:
    """Return the number of spins of dimers, which must be even."""
    count = checked_count(n, "n")
    if count % 2:
        raise OptionError(f"n is {count}; dimers are pairs, so n must be even")
    return count


def checked_number(value: Any, name: str) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise OptionError(f"{name} is {shown(value)}; it must be a number")
    if not -sys.float_info.max <= value <= sys.float_info.max:  # refuses NaN too
        raise OptionError(f"{name} is {shown(value)}; it must be finite")
    return float(value)


def checked_scale(value: Any, name: str) -> float:
    """Return a finite number, 0 or more."""
    number = checked_number(value, name)
    if number < 0.0:
        raise OptionError(f"{name} is {number}; it cannot be negative")
    return number


def checked_flag(value: Any, name: str) -> bool:
    """Return True or False, which may be given as 1 or 0."""
    if not isinstance(value, int | np.bool_ | np.integer) or value not in (0, 1):
        raise OptionError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def checked_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """Return a word that must be one of several."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise OptionError(f"{name} is {value!r}; it must be one of {known}")
    return value


WORDS_AT_A_TIME = 1024


class Stream:
    """The random numbers of a seed, one after the other."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(checked_whole(seed, "seed"))

    def unit(self, count: int) -> NDArray[np.float64]:
        """Return numbers from [0, 1), multiples of 2^-53."""
        words = np.atleast_1d(self._bits.random_raw(count)).astype(np.uint64)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def units(self) -> Iterator[float]:
        """Yield numbers from [0, 1) endlessly, for choices that depend on each other."""
        while True:
            yield from self.unit(WORDS_AT_A_TIME).tolist()

    def uniform(self, count: int, largest: float) -> NDArray[np.float64]:
        """Return numbers from [-largest, largest)."""
        return largest * (2.0 * self.unit(count) - 1.0)

    def signs(self, count: int) -> NDArray[np.float64]:
        """Return +1 and -1, each with probability 1/2."""
        return np.where(self.unit(count) < 0.5, 1.0, -1.0)

    def shuffled(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values in a random order."""
        return values[np.argsort(self.unit(len(values)), kind="stable")]

    def normal(self, count: int) -> NDArray[np.float64]:
        """Return standard normal numbers, as ratios of uniforms (Kinderman and Monahan 1977).

        The number itself is only a quotient; the logarithm, which libraries round differently, only decides
        whether the number is accepted.
        """
        blocks: list[NDArray[np.float64]] = []
        have = 0
        while have < count:
            pair = self.unit(2 * (count - have)).reshape(-1, 2)
            u = 1.0 - pair[:, 0]
            x = (2.0 * pair[:, 1] - 1.0) * 0.8577638849607068 / u  # sqrt(2 / e)
            accepted = x[x * x <= -4.0 * np.log(u)]
            blocks.append(accepted)
            have += len(accepted)
        return np.concatenate(blocks) if blocks else np.empty(0)


COUPLINGS = ("gaussian", "bimodal", "uniform", "ferromagnetic", "antiferromagnetic")


class Weights:
    """Couplings of one kind and a field: checked when this is made, drawn when the edges are known."""

    def __init__(self, strength: Any, couplings: Any, field: Any) -> None:
        self.strength = checked_scale(strength, "strength")
        self.couplings = checked_choice(couplings, "couplings", COUPLINGS)
        self.field = checked_number(field, "field")

    def on(self, n: int, pairs: NDArray[np.int64], stream: Stream) -> Ising:
        """Return the model of n spins with these edges (m x 2)."""
        return Ising.from_edges(n, pairs, self.draw(len(pairs), stream), np.full(n, self.field))

    def draw(self, count: int, stream: Stream) -> NDArray[np.float64]:
        """Return this many couplings."""
        match self.couplings:
            case "gaussian":
                return self.strength * stream.normal(count)
            case "bimodal":
                return self.strength * stream.signs(count)
            case "uniform":
                return stream.uniform(count, self.strength)
            case "ferromagnetic":
                return np.full(count, self.strength)
            case _:
                return np.full(count, -self.strength)


def parameter_help(generator: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter from a generator's docstring, without markup, on one line each.

    Parameters
    ----------
    generator
        Any function with a docstring in numpy's style. Parameters that are described together share a description.

    Returns
    -------
    dict
        A sentence or more for each parameter.

    Examples
    --------
    >>> from spectralz import generators
    >>> parameter_help(generators.curie_weiss)["field"]
    'theta, the same for all spins.'
    """
    words: dict[str, str] = {}
    names: list[str] = []
    for line in _section(inspect.getdoc(generator) or "", "Parameters"):
        if line.strip() and not line.startswith(" "):
            names = [name.strip().lstrip("*") for name in line.split(":")[0].split(",")]
            words.update(dict.fromkeys(names, ""))
        else:
            for name in names:
                words[name] = f"{words[name]} {_plain(line)}".strip()
    return words


def _section(text: str, title: str) -> list[str]:
    """Return the lines between a title with its dashes and the next such title."""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n---+$|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return match[1].splitlines() if match else []


def _plain(line: str) -> str:
    return re.sub(r":\w+:`([^`]*)`|``", r"\1", line).strip()
