"""Moved to ``spectralz.sweeps``; kept for scripts written for 0.1."""

from spectralz.sweeps.rows import COLUMNS, Row, Summary, header, read_rows, summarise, to_csv

__all__ = ["COLUMNS", "Row", "Summary", "header", "read_rows", "summarise", "to_csv"]
