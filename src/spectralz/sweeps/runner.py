"""Run a sweep: tasks go to worker processes or a Dask cluster, rows to a file that survives being killed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from spectralz._support.options import checked_count
from spectralz._support.progress import report
from spectralz.sweeps.dask import on_dask
from spectralz.sweeps.pool import Pool
from spectralz.sweeps.store import locked, open_rows

if TYPE_CHECKING:
    from spectralz.sweeps.store import RowFile
    from spectralz.sweeps.sweep import Sweep
    from spectralz.sweeps.task import Answers


def run(
    sweep: Sweep, folder: Path, *, workers: int | None = None, dask: str | None = None, limit: int | None = None
) -> Path:
    """Run a sweep, or the rest of it, and return the path of its rows.

    Parameters
    ----------
    sweep
        The sweep.
    folder
        The folder for its rows; created if it does not exist. A folder with a part of the same sweep is completed.
    workers
        Number of processes, each with a single thread; by default one per core. They start by importing the main
        module, so a script must call this under ``if __name__ == "__main__":``.
    dask
        Address of the scheduler of a Dask cluster, such as ``"tcp://10.0.0.1:8786"``, to send the tasks there instead.
        Its workers need this package, and files at the same paths; for comparable times they should have one thread
        each.
    limit
        Most models to run now; the others are left for the next call.

    Raises
    ------
    OptionError
        If the folder holds another sweep, or another process is writing to it.
    MissingDependencyError
        If a Dask cluster is asked for and ``distributed`` is not installed.
    KeyboardInterrupt
        If interrupted; the rows so far are kept, and the same call continues from there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from spectralz.sweeps import Contestant, Sweep, read_rows
    >>> bp = Contestant(label="BP", method="bp")
    >>> sweep = Sweep(name="small", contestants=(bp,), generator="grid", parameters={"side": 2}, values=(0.1,))
    >>> rows = read_rows(run(sweep, pathlib.Path(tempfile.mkdtemp()), workers=1))
    >>> [(row.instance, row.label, abs(row.error) < 1e-3) for row in rows]
    [('grid-strength=0.1-seed=0', 'BP', True)]
    """
    count = checked_count(workers, "workers", least=1) if workers is not None else os.cpu_count() or 1
    most = checked_count(limit, "limit", least=0) if limit is not None else None
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        file = open_rows(sweep, folder)
        missing = [task for task in sweep.tasks() if task.instance not in file.done][:most]
        if missing:
            answers = on_dask(dask, missing, sweep) if dask is not None else Pool(count, missing, sweep).answers()
            _collect(sweep, file, answers)
        file.settle()
    return file.path


def _collect(sweep: Sweep, file: RowFile, answers: Answers) -> None:
    """Append the rows as they arrive."""
    try:
        with contextlib.closing(answers):
            report(f"running {sweep.name}", len(file.done) / len(file.instances))
            for rows in answers:
                file.append(rows)
                report(f"running {sweep.name}", len(file.done) / len(file.instances))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(file.done)} of {len(file.instances)} models are done and kept in {file.path.parent}; "
            "the same command continues from there"
        ) from None
