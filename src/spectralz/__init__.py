"""Partition functions of binary models, and how far each answer can be trusted.

What is public stands in ``__init__.pyi``, for tools that check types and for Python, which imports it on first use.
"""

from spectralz._support import interrupts as _interrupts  # isort: skip  # noqa: F401  (first: an interrupt is quiet)
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any as _Any

import lazy_loader as _lazy_loader

__version__ = "0.2.0"

_public, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> _Any:
    if name not in __all__ and not name.startswith("_") and _find_spec(f"{__name__}.{name}"):
        return _import_module(f"{__name__}.{name}")  # a folder, such as ``spectralz.result``
    return _public(name)
