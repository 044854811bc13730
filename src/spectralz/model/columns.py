"""Which spin each column of a table is: by the labels of its columns if it has any, otherwise by position.

A DataFrame has labels, even if they are only 0, 1, 2, ...; a Series has those of the row that it was. Arrays and lists
have none. The labels of a model without names are 0, 1, 2, ... Labels match by their text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from spectralz.errors import ModelError, OptionError, printable, shown
from spectralz.model.names import are_default

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from spectralz.model import Model
    from spectralz.model.coupling.base import IntArray

# How the columns of a table are matched with spins.
Columns: TypeAlias = Literal["labels", "position"]
BY_POSITION = 'columns="position"'
# How many labels, and how much of them, an error shows.
LABELS_SHOWN, LONGEST_LABELS = 4, 60


def labels_of(X: Any) -> list[Hashable] | None:
    """Return the labels of the columns of a DataFrame, or of a row of one; None if there are none.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame([[1, -1]], columns=["b", "a"])
    >>> labels_of(frame), labels_of(frame.iloc[0]), labels_of([[1, -1]])
    (['b', 'a'], ['b', 'a'], None)
    """
    labels = getattr(X, "columns", None)
    if labels is None and hasattr(X, "iloc"):
        labels = X.index
    return None if labels is None else list(labels)


def checked_labels(X: Any, by: Columns) -> list[Hashable] | None:
    """Return the labels that say which spins columns are, or None if they go by position."""
    if by not in ("labels", "position"):
        raise OptionError(f"columns is {shown(by)}; it is 'labels' or 'position'")
    return labels_of(X) if by == "labels" else None


def places_of_labels(labels: Sequence[Hashable], names: Sequence[Hashable], way_out: str = BY_POSITION) -> IntArray:
    """Return the place of every label among names of the same text, all different; ``way_out`` ends an error.

    Examples
    --------
    >>> places_of_labels(["c", 1], ["1", "b", "c"]).tolist()
    [2, 0]
    """
    texts, known = [str(label) for label in labels], [str(name) for name in names]
    place = {text: k for k, text in enumerate(known)}
    once = len(place) == len(known)
    unknown = [text for text in texts if text not in place]
    if not once or len(set(texts)) < len(texts):
        text = first_twice(texts if once else known)
        raise ModelError(
            f"two {'columns' if once else 'spins'} are called {shown(text)}; rename one, or give {way_out}"
        )
    if unknown:
        raise ModelError(
            f"the columns are {_in_short(texts)} and the spins {_in_short(known)}: there is no spin "
            f"{shown(unknown[0])}; rename the columns, or give {way_out} to go by position"
        )
    return np.array([place[text] for text in texts], dtype=np.int64)


def states_in_order(X: Any, names: Sequence[Hashable]) -> Any:
    """Return whole states in the order of the spins, as an array if their columns have labels.

    Examples
    --------
    >>> import pandas as pd
    >>> states_in_order(pd.DataFrame([[1, -1]], columns=["b", "a"]), ["a", "b"]).tolist()
    [[-1, 1]]
    """
    labels = labels_of(X)
    if labels is None:
        return X
    places = places_of_labels(labels, names, "an array of them, by to_numpy(),")
    if len(places) < len(names):
        missing = next(name for k, name in enumerate(names) if k not in set(places.tolist()))
        raise ModelError(f"there is no column for the spin {shown(missing)}; whole states are wanted here")
    return np.asarray(X)[..., np.argsort(places)]


def column_names(model: Model) -> Sequence[Hashable]:
    """Return the names that columns go by: those of the spins, or 0 to n - 1."""
    return range(model.n) if model.names is None else model.names


def names_from(labels: Sequence[Hashable] | None) -> list[Hashable] | None:
    """Return the names that columns give to spins: none if they are only numbered, in order."""
    if labels is None or are_default(tuple(labels)):
        return None
    texts = [str(label) for label in labels]
    if len(set(texts)) < len(texts):
        raise ModelError(f"two columns are called {shown(first_twice(texts))}; rename one of them")
    return list(labels)


def first_twice(texts: Sequence[str]) -> str:
    """Return the first text that was there before."""
    return next(text for k, text in enumerate(texts) if text in texts[:k])


def _in_short(texts: Sequence[str]) -> str:
    """Return the first few of some labels."""
    more = ", ..." if len(texts) > LABELS_SHOWN else ""
    return printable(", ".join(texts[:LABELS_SHOWN]))[:LONGEST_LABELS] + more
