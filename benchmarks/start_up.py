"""Measure the time to import the package and to print the help: ``python -m benchmarks.start_up``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.harness import table

COMMANDS = {
    "import numpy, scipy": ["-c", "import numpy, scipy"],
    "import numpy, scipy.sparse": ["-c", "import numpy, scipy.sparse"],
    "import spectralz": ["-c", "import spectralz"],
    "from spectralz import read": ["-c", "from spectralz import read"],
    "from spectralz import log_z": ["-c", "from spectralz import log_z"],
    "spectralz --help": ["-m", "spectralz", "--help"],
}


def main(repeats: int = 11) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats + 1):
        for name, arguments in COMMANDS.items():  # in turns, so that all see the same machine
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    base = medians["import numpy, scipy"]
    rows = [[name, f"{seconds:.3f}", f"{seconds - base:+.3f}"] for name, seconds in medians.items()]
    print("\nStart-up, median of", repeats, "\n\n" + table(["command", "seconds", "more than numpy and scipy"], rows))
    return medians


if __name__ == "__main__":
    main()
