"""Moved to ``spectralz.sweeps``; kept for scripts written for 0.1."""

from spectralz.paper.fig2b_sdp_time import timed
from spectralz.sweeps import Contestant, Sweep, Task, read_config

__all__ = ["Contestant", "Sweep", "Task", "read_config", "timed"]
