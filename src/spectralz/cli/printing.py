"""Answers as JSON: one object, with the version that gave it and without numbers that JSON does not have."""

from __future__ import annotations

import json
import math
from typing import Any

import spectralz as sz


def print_json(answer: dict[str, Any]) -> None:
    """Print an object with the version first; numbers that are not finite become null."""
    print(json.dumps(_finite({"version": sz.__version__, **answer}), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return the same with None instead of infinities and NaN.

    Examples
    --------
    >>> _finite({"lower": -math.inf, "rows": [1.5, math.nan]})
    {'lower': None, 'rows': [1.5, None]}
    """
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
