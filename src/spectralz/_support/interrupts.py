"""Handle interrupts while the command line is still being imported; this module is imported first.

numpy and scipy take half a second to import. At that time an interrupt has nothing to save, and in the middle of an
import it could appear as any error. So the process ends at once, in one line. The same holds when the command is done
and Python shuts down. In between an interrupt is a normal KeyboardInterrupt, and so is a request to terminate. If the
process is not the command line, nothing is changed.
"""

import _thread
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
# How long the compiler has to go on before it gets an interrupt again.
SECONDS_TO_LEAVE = 0.02
# Where interrupts are held back, and how often, for two seconds in all: loading a kernel takes milliseconds.
COMPILERS, MOST_DELAYS = ("numba", "llvmlite"), 100


def is_command_line(started_by: str, orig_argv: list[str]) -> bool:
    """Return whether this process is ``spectralz`` or ``python -m spectralz``, and not one of its workers.

    ``sys.argv[0]`` is ``-m`` only while the package to be run is being imported.

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
    """Make an interrupt end the process in one line from here on."""
    if _ours and signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _interrupt):  # not where it is ignored
        signal.signal(signal.SIGINT, _end)
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def raise_on_interrupt() -> None:
    """Make an interrupt a KeyboardInterrupt from here on."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _interrupt)
    if _ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
    if _ours:
        sys.unraisablehook = raise_lost_interrupt


def raise_lost_interrupt(lost: "sys.UnraisableHookArgs") -> None:
    """Send an interrupt again that came while compiled code called Python, and was dropped."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _send_again(_came[-1] if _came else signal.SIGINT)
    else:
        sys.__unraisablehook__(lost)


def _send_again(number: int) -> None:
    timer = threading.Timer(SECONDS_TO_LEAVE, _thread.interrupt_main, (number,))
    timer.daemon = True
    timer.start()


def has_come() -> bool:
    """Return whether an interrupt or a request to terminate has come in; in an import it can appear as any error."""
    return bool(_came)


def end_at_once(code: int) -> None:
    """End the command line after an interrupt.

    Python ends with a signal of its own if an interrupt came while it ran a piece of source text, handled or not.
    """
    if _ours and code in (INTERRUPTED, TERMINATED):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


def exit_code() -> int:
    """Return the exit code of a command that was interrupted, or asked to terminate."""
    return TERMINATED if signal.SIGTERM in _came else INTERRUPTED


def _interrupt(number: int, frame: "FrameType | None") -> None:
    _came.append(number)
    if len(_came) <= MOST_DELAYS and _is_in_compiler(frame):
        _send_again(number)
    else:
        raise KeyboardInterrupt


def _is_in_compiler(frame: "FrameType | None") -> bool:
    """Return whether numba or llvmlite are at work: their compiled parts drop an error there, or crash."""
    while frame is not None:
        if any(f"{os.sep}{package}{os.sep}" in frame.f_code.co_filename for package in COMPILERS):
            return True
        frame = frame.f_back
    return False


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


# Signals that came in.
_came: list[int] = []
_ours = is_command_line((getattr(sys, "argv", None) or [""])[0], sys.orig_argv)
end_on_interrupt()
