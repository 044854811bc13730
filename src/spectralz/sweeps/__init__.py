"""Sweeps: any methods on any models, run on processes or a cluster, kept as rows."""

from __future__ import annotations

from spectralz.sweeps.rows import Row, Summary, read_rows, summarise
from spectralz.sweeps.runner import run
from spectralz.sweeps.sweep import Contestant, Sweep, Task, read_config

__all__ = ["Contestant", "Row", "Summary", "Sweep", "Task", "read_config", "read_rows", "run", "summarise"]
