"""Moved to ``spectralz.sweeps``; kept for scripts written for 0.1."""

from spectralz.sweeps.runner import run
from spectralz.sweeps.task import run_task

__all__ = ["run", "run_task"]
