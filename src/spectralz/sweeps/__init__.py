"""Sweeps: any methods on any models, run in processes or on a cluster, and stored as rows."""

from spectralz.sweeps.config import read_config
from spectralz.sweeps.rows import Row, Summary, read_rows, summarise
from spectralz.sweeps.runner import run
from spectralz.sweeps.sweep import Contestant, Sweep, Task

__all__ = ["Contestant", "Row", "Summary", "Sweep", "Task", "read_config", "read_rows", "run", "summarise"]
