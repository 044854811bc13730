"""Run the tasks of a sweep on a Dask cluster, if ``distributed`` is installed."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

from spectralz._support.executors import dask_client
from spectralz._support.extras import from_extra
from spectralz.sweeps.task import MOST_ATTEMPTS, failed_rows, in_words, run_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.sweeps.sweep import Sweep
    from spectralz.sweeps.task import Answers, Task


def on_dask(address: str, tasks: Sequence[Task], sweep: Sweep) -> Answers:
    """Yield the rows of each task when the cluster has done it; a task that fails there is tried once more."""
    distributed = from_extra("distributed", "dask", "a Dask cluster")
    with dask_client(address) as client:
        yield from _gathered(distributed, client, tasks, sweep)


def _gathered(distributed: Any, client: Any, tasks: Sequence[Task], sweep: Sweep) -> Answers:
    def submit(task: Task) -> Any:
        key = f"spectralz-{task.instance}-{uuid.uuid4().hex}"
        future = client.submit(run_task, task, sweep.contestants, sweep.truth, key=key, pure=False)
        tasks_of[future.key] = task
        return future

    tasks_of: dict[str, Task] = {}
    attempts = Counter[str]()
    futures = distributed.as_completed([submit(task) for task in tasks], loop=client.loop)
    for future in futures:
        task = tasks_of[future.key]
        try:
            rows = future.result()
        except Exception as error:  # run_task raises nothing: a worker or its result is lost
            attempts[task.instance] += 1
            is_final = isinstance(error, distributed.KilledWorker)  # the scheduler has already tried it several times
            if attempts[task.instance] < MOST_ATTEMPTS and not is_final:
                futures.add(submit(task))
                continue
            rows = failed_rows(task, sweep.contestants, in_words(error))
        yield rows
        future.release()
