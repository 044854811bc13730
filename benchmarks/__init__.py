"""Speed and accuracy against rivals, measured side by side in one run: ``make bench``."""
