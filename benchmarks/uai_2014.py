"""Measure time and memory of exact answers for a folder of UAI models: ``python -m benchmarks.uai_2014 DIR``."""

from __future__ import annotations

import sys
from pathlib import Path

import spectralz as sz
from benchmarks.harness import Measurement, measure, processor, save, table


def log_z(path: Path) -> float:
    return sz.log_z(sz.read(path)).log_z


def marginals(path: Path) -> float:
    return sz.marginals(sz.read(path)).estimate.log_z


def main(folder: Path) -> list[Measurement]:
    measurements, rows = [], []
    for path in sorted(folder.glob("*.uai")):
        about = sz.log_z(sz.read(path))
        alone = measure(path.stem, "log Z", lambda p=path: lambda: log_z(p), repeats=3)
        means = measure(path.stem, "marginals", lambda p=path: lambda: marginals(p), repeats=3)
        measurements += [alone, means]
        width = f"2^{about.details['width']}, {' and '.join(about.details['orders'])}"
        cells = [f"{found.seconds:.2f} | {found.peak_mib:.0f}" for found in (alone, means)]
        rows.append([path.stem, f"{about.log_z:.9f}", f"{about.upper - about.lower:.0e}", width, *cells])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    save("uai_2014", measurements)
    print(f"\nExact answers, reading the file included, one thread, {processor()}, median of three runs\n")
    headings = [
        "model",
        "log Z",
        "width of the enclosure",
        "widest table",
        "log Z: s",
        "peak MiB",
        "marginals: s",
        "peak MiB",
    ]
    print(table(headings, rows))
    return measurements


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.uai_2014 DIR")
    main(Path(sys.argv[1]))
