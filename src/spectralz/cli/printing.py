"""Answers as JSON: one object, with the version that gave it and without numbers that JSON does not have."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import spectralz as sz

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.cli.loading import Problem


def print_json(answer: dict[str, Any]) -> None:
    """Print an object with the version first; numbers that are not finite become null."""
    print(json.dumps(_finite({"version": sz.__version__, **answer}), indent=2, allow_nan=False))


def print_about(problem: Problem, answer: Any, as_json: bool, show: Callable[[Any], None] = print) -> None:
    """Print which model it is and the answer, by ``show`` or as JSON."""
    if as_json:
        print_json({**problem.about(), **answer.to_dict()})
    else:
        print(f"{problem.source}: {problem.in_words}")
        show(answer)


def _finite(value: Any) -> Any:
    """Return the same with None instead of infinities and NaN.

    Examples
    --------
    >>> _finite({"lower": -math.inf, "rows": [1.5, math.nan]})
    {'lower': None, 'rows': [1.5, None]}
    """
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
