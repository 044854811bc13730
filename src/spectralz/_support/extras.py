"""Import optional packages where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spectralz.errors import MissingDependencyError


def from_extra(module: str, extra: str, what: str) -> Any:
    """Import a package of the extra ``extra``, or raise an error that names it; ``what`` is the purpose."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingDependencyError(
            f"{what} needs the package {module}; install it with: pip install 'spectralz[{extra}]'"
        ) from None
