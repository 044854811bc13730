"""Measure each contestant in a fresh process, so that imports, caches and memory of one do not affect another."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "out" / "bench"


@dataclass(frozen=True)
class Measurement:
    """The result of one contestant on one instance."""

    instance: str
    contestant: str
    seconds: float | None
    value: float | None
    peak_mib: float | None
    note: str = ""


def measure(
    instance: str, contestant: str, prepare: Callable[[], Callable[[], float]], repeats: int = 3, limit_s: float = 300.0
) -> Measurement:
    """Run ``prepare`` and time what it returns, in a process of its own.

    The first call, in which compilers and caches warm up, is thrown away if there is time for a second. The median of
    the others is kept. If the function has an attribute ``finish``, that gives the value afterwards, untimed.
    """
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(sending, prepare, repeats))
    process.start()
    sending.close()
    found: dict[str, Any] = {"note": f"no answer within {limit_s:g} s"}
    if receiving.poll(limit_s):
        try:
            found = receiving.recv()
        except EOFError:
            found = {"note": "died (out of memory?)"}
    process.kill()
    process.join()
    blank = {"seconds": None, "value": None, "peak_mib": None}
    return Measurement(instance=instance, contestant=contestant, **{**blank, **found})


def _child(sending: Any, prepare: Callable[[], Callable[[], float]], repeats: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
    try:
        run = prepare()
        times = []
        value = float("nan")
        for _ in range(repeats + 1):
            started = time.perf_counter()
            value = float(run())
            times.append(time.perf_counter() - started)
            if sum(times) > 60.0:
                break
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        value = float(getattr(run, "finish", lambda: value)())
        sending.send({"seconds": statistics.median(times[1:] or times), "value": value, "peak_mib": peak})
    except Exception as error:  # the failure of another package is a result
        sending.send({"note": f"{type(error).__name__}: {str(error)[:70]}"})


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def save(name: str, measurements: list[Measurement]) -> None:
    """Save the raw numbers, with the Python, processor and threads they were measured on."""
    OUT.mkdir(parents=True, exist_ok=True)
    about = {
        "python": platform.python_version(),
        "processor": processor(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }
    content = {"about": about, "measurements": [asdict(m) for m in measurements]}
    (OUT / f"{name}.json").write_text(json.dumps(content, indent=2))


def processor() -> str:
    """Return the name of the processor, if the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
