"""The report: one HTML page of a folder of sweeps."""

from __future__ import annotations

from spectralz.report.figure import Claim, Figure
from spectralz.report.write import write_report

__all__ = ["Claim", "Figure", "write_report"]
