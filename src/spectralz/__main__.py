"""``python -m spectralz`` is the command line."""

from spectralz.cli import main

main()
