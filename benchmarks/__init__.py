"""Measure speed and accuracy, and compare them with other packages in the same run: ``make bench``."""
