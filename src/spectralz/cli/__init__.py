"""The command line: thin commands over the verbs. Results go to stdout, messages and progress to stderr.

Exit codes: 0 done, 1 not converged under ``--strict``, 2 bad input, 130 interrupted; after an interrupt the best answer
so far, if there is one, is printed and written.
"""

from spectralz.cli.app import app, main
from spectralz.cli.solving import print_comparison

__all__ = ["app", "main", "print_comparison"]
