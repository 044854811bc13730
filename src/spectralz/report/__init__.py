"""Pages in HTML, one file each: the report of a folder of sweeps, an answer, and a comparison of methods."""

from spectralz.report.answer import comparison_page, estimate_page
from spectralz.report.entries import Claim, Figure
from spectralz.report.page import write_report

__all__ = ["Claim", "Figure", "comparison_page", "estimate_page", "write_report"]
