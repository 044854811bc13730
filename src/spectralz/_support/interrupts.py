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

INTERRUPTED, TERMINATED = 130, 143
# How long compiled code that called Python has to go on before it gets an interrupt again.
SECONDS_TO_LEAVE = 0.02


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
    if _ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where interrupts are ignored
        signal.signal(signal.SIGINT, _end)
    if signal.getsignal(signal.SIGTERM) is _terminate:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def raise_on_interrupt() -> None:
    """Make an interrupt a KeyboardInterrupt from here on."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if _ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    if _ours:
        sys.unraisablehook = raise_lost_interrupt


def raise_lost_interrupt(lost: "sys.UnraisableHookArgs") -> None:
    """Send an interrupt again that came while compiled code called Python, as LLVM does, which drops all errors."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    again = signal.SIGTERM if _requests else signal.SIGINT
    timer = threading.Timer(SECONDS_TO_LEAVE, _thread.interrupt_main, (again,))
    timer.daemon = True
    timer.start()


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
    return TERMINATED if _requests else INTERRUPTED


def _terminate(*_: object) -> None:
    _requests.append(signal.SIGTERM)
    raise KeyboardInterrupt


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


# Requests to terminate that came in.
_requests: list[int] = []
_ours = is_command_line((getattr(sys, "argv", None) or [""])[0], sys.orig_argv)
end_on_interrupt()
