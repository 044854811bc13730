"""Imported before all else: what an interrupt does while the command line is still being imported.

numpy and scipy take half a second to import. An interrupt in that time has nothing to save, and raised in the middle of
an import it could come out as any error: the process ends at once, in one line. So it does once the command is done,
while Python shuts down. In between an interrupt is a KeyboardInterrupt as ever. Where the package is not the command
line, nothing is touched.
"""

import os
import signal
import sys

__all__ = ["INTERRUPTED", "end_on_interrupt", "raise_on_interrupt"]

INTERRUPTED = 130


def is_command_line(started_by: str, orig_argv: list[str]) -> bool:
    """Tell whether this process is ``spectralz`` or ``python -m spectralz``, and none of its workers.

    ``sys.argv[0]`` is ``-m`` just while the package that is to run is being imported.

    Examples
    --------
    >>> is_command_line("/usr/bin/spectralz", ["python", "/usr/bin/spectralz", "--help"])
    True
    >>> is_command_line("-m", ["python", "-m", "spectralz", "--help"])
    True
    >>> is_command_line("/usr/lib/pytest/__main__.py", ["python", "-m", "pytest", "spectralz"])
    False
    """
    if "--multiprocessing-fork" in orig_argv:
        return False
    name = os.path.splitext(os.path.basename(started_by))[0]
    return name == "spectralz" or (started_by == "-m" and "spectralz" in orig_argv)


def end_on_interrupt() -> None:
    """From here on an interrupt ends the process in one line."""
    if _ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where interrupts are ignored
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """From here on an interrupt is a KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


_ours = is_command_line((getattr(sys, "argv", None) or [""])[0], sys.orig_argv)
end_on_interrupt()
