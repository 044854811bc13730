"""Runs made by workers: the same answer whoever makes them, and what becomes of those that are lost.

The oracle is the answer without an executor, to the last bit.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import socket
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import clock, threads
from spectralz._support.executors import Lost, as_executor, current_executor, spread, using_executor, worker_count
from spectralz._support.threads import using_threads
from spectralz.errors import InaccurateWarning, LostRunsWarning, ModelError, OptionError
from spectralz.sampling import population
from spectralz.sampling.path import path_to
from spectralz.sampling.population import Layout, populations
from spectralz.sampling.round_trips import there_and_back_in_parts
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import operations
from spectralz.trust.states import judge_round_trip
from tests.helpers import heard, with_slow

# One whose spins are swept in turn, one with matrix products, one with a side that is summed out.
MODELS = {
    "grid": sz.generators.grid(side=5, strength=3.0, seed=0),
    "dense": sz.generators.complete(n=24, strength=0.15, seed=1),  # too warm for phases
    "bipartite": sz.generators.bipartite(n=40, strength=0.3, seed=0),
}
OPTIONS = {"population": 150, "runs": 5, "seed": 3}
HERE = {name: sz.marginals(model, "annealing", **OPTIONS) for name, model in MODELS.items()}


def assert_the_same(found, name):
    here = HERE[name]
    assert found.estimate.log_z == here.estimate.log_z
    assert found.estimate.std_error == here.estimate.std_error
    assert found.estimate.status == here.estimate.status
    assert found.estimate.details == here.estimate.details
    assert np.array_equal(found.mean, here.mean)
    assert np.array_equal(found.pair_mean, here.pair_mean)


def processes(count):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


class AtOnce(Executor):
    """Does all work when it is given, on copies as a process has; the numbers in ``dying`` fail."""

    def __init__(self, *dying, error=None, are_copies=True):
        self.dying, self.error, self.are_copies = dying, error or BrokenProcessPool("a process was killed"), are_copies
        self.given = 0

    def submit(self, work, /, *arguments):
        future = Future()
        number, self.given = self.given, self.given + 1
        if number in self.dying:
            future.set_exception(self.error)
            return future
        try:
            work, arguments = pickle.loads(pickle.dumps((work, arguments))) if self.are_copies else (work, arguments)
            future.set_result(work(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future


# --- the same answer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_give_the_same_answer(name, count):
    with ThreadPoolExecutor(count) as executor:
        assert_the_same(sz.marginals(MODELS[name], "annealing", **OPTIONS, executor=executor), name)


@pytest.mark.slow
@pytest.mark.parametrize("count", with_slow([1, 2, 3], [2, 3]))
def test_processes_give_the_same_answer(count):
    with processes(count) as executor:
        for name, model in MODELS.items():
            assert_the_same(sz.marginals(model, "annealing", **OPTIONS, executor=executor), name)


@pytest.mark.parametrize("are_copies", [True, False])
def test_an_executor_that_works_at_once_gives_the_same_answer(are_copies):
    for name, model in MODELS.items():
        executor = AtOnce(are_copies=are_copies)
        assert_the_same(sz.marginals(model, "annealing", **OPTIONS, executor=executor), name)
        assert executor.given == OPTIONS["runs"]


@pytest.mark.slow
def test_other_options_travel_too():
    model = MODELS["dense"]
    said = []
    for options in ({}, {"sweeps": 3}, {"population": 200}):
        settings = {**OPTIONS, **options}
        here, there = (sz.log_z(model, "annealing", **settings, executor=each) for each in (None, AtOnce()))
        assert there.details == here.details
        said.append(here.log_z)
    assert len(set(said)) == 3


def test_samples_and_states_are_the_same_too():
    model = MODELS["dense"]
    with ThreadPoolExecutor(2) as executor:
        options = {**OPTIONS, "runs": 8}  # fewer do not show their scatter
        drawn = [sz.sample(model, 20, "annealing", **options, executor=each) for each in (None, executor)]
        found = [sz.log_z(model, "states", population=100, executor=each) for each in (None, executor)]
    assert np.array_equal(*drawn)
    assert found[0].log_z == found[1].log_z
    assert found[0].details == found[1].details


def test_evidence_goes_with_it():
    model = MODELS["dense"]
    here, there = (sz.log_z(model, "annealing", **OPTIONS, given={0: 1}, executor=each) for each in (None, AtOnce()))
    assert here.log_z == there.log_z


def test_streams_of_random_numbers_are_those_of_seed_and_run():
    seen = []

    class Watching(AtOnce):
        def submit(self, work, /, *arguments):
            seen.append(arguments[0].seed)
            return super().submit(work, *arguments)

    sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=Watching())
    assert [(seed.entropy, seed.spawn_key) for seed in seen] == [(3, (k,)) for k in range(5)]


def test_a_worker_knows_nothing_of_budgets_and_executors():
    """An executor may work in the very thread that asks, where a run would be charged twice, and spread again."""
    seen = []

    class Watching(AtOnce):
        def submit(self, work, /, *arguments):
            job = arguments[0]._replace(work=partial(watched, arguments[0].work))
            return super().submit(work, job)

    def watched(work, rng):
        seen.append((current_executor(), clock.counts_operations()))
        return work(rng)

    with clock.counting_operations() as there:
        sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=Watching(are_copies=False))
    assert seen == [(None, False)] * OPTIONS["runs"]
    with clock.counting_operations() as here:
        sz.log_z(MODELS["dense"], "annealing", **OPTIONS)
    assert there.count == here.count > 0


class Elsewhere(AtOnce):
    """Does the work as another process would, which has a number of its own."""

    def submit(self, work, /, *arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            return super().submit(work, *arguments)


def test_another_process_works_in_one_thread(monkeypatch):
    seen = []
    original = population.parts_of_path
    monkeypatch.setattr(
        population, "parts_of_path", lambda *all_: seen.append(threads.thread_count()) or original(*all_)
    )
    for name in threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "available_cores", lambda: 3)
    sz.log_z(MODELS["dense"], "annealing", **OPTIONS, threads=3, executor=Elsewhere())
    assert seen == [1] * OPTIONS["runs"]


def test_progress_is_told():
    with heard() as told:
        sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=AtOnce())
    assert [share for task, share in told if task == "annealing"][-1] == 1.0


# --- auto -----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize("count", [1, 3])
def test_auto_counts_the_same_operations_whatever_the_workers(count):
    model = sz.generators.complete(n=30, strength=0.5, seed=0)
    options = {"exclude": ["exact"], "work": 2e7, "seed": 7}
    with ThreadPoolExecutor(count) as executor:
        here, there = (sz.log_z(model, **options, executor=each) for each in (None, executor))
    assert there.log_z == here.log_z
    assert there.details["operations"] == here.details["operations"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_auto_keeps_all_workers_busy(clock):
    model = sz.generators.complete(n=30, strength=0.2, seed=0)  # no phases to anneal towards
    truth = sz.log_z(model, "annealing", population=2000)
    executor = AtOnce(are_copies=False)
    executor._max_workers = 7
    found = sz.log_z(model, exclude=["exact"], budget=8.0, executor=executor)
    assert executor.given >= 4 * 7  # parts are many, so that few workers wait for the last ones
    assert abs(found.log_z - truth.log_z) < 5 * np.hypot(found.std_error, truth.std_error)


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_auto_says_what_was_lost():
    model = sz.generators.complete(n=30, strength=0.5, seed=0)
    found = sz.log_z(model, exclude=["exact"], work=2e7, executor=AtOnce(1))
    assert "1 more run was lost by the workers (BrokenProcessPool: a process was killed)" in found.status


def test_both_ways_are_the_same_for_any_number_of_workers():
    betas = np.linspace(0.0, 1.0, 20)
    found = []
    for executor in (None, AtOnce(), AtOnce(are_copies=False)):
        path = path_to(MODELS["dense"])
        with using_executor(executor), crew_for(path) as crew:
            found.append(there_and_back_in_parts(crew, path, betas, 64, 3, np.random.default_rng(0)))
    for other in found[1:]:
        assert np.array_equal(found[0].there, other.there)
        assert np.array_equal(found[0].back, other.back)
    assert len(found[0].x) == len(found[0].there) == 3 * 64
    assert len(set(found[0].there.tolist())) > 2 * 64  # no run is another's copy
    truth = sz.log_z(MODELS["dense"]).log_z
    assert abs(found[0].log_z + MODELS["dense"].constant - truth) < 5 * judge_round_trip(found[0]).std_error


# --- what is lost ---------------------------------------------------------------------------------------------------


def test_a_worker_that_dies_costs_its_run():
    model = MODELS["dense"]
    found = sz.log_z(model, "annealing", **OPTIONS, executor=AtOnce(1))
    assert HERE["dense"].estimate.details["states"] == 750
    assert found.details["states"] == 600
    assert found.status.startswith("600 states in 4 groups")
    assert "1 more run was lost by the workers (BrokenProcessPool: a process was killed)" in found.status
    assert found.std_error != HERE["dense"].estimate.std_error


@pytest.mark.parametrize("lost", [(0,), (3,), (0, 1, 2)])
def test_states_do_with_what_is_left(lost):
    model = sz.generators.complete(n=18, strength=2.0, seed=0)
    found = sz.log_z(model, "states", population=500, executor=AtOnce(*lost))
    assert "lost by the workers" in found.status
    assert abs(found.log_z - sz.log_z(model, "exact").log_z) < 1e-3


def killed(_):
    os._exit(1)


@pytest.mark.slow
def test_a_process_that_dies_ends_with_an_answer():
    """A pool of processes breaks as a whole: what was done before counts, or all is made here."""
    with processes(1) as executor:
        assert sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=executor) is not None
        executor.submit(killed, 0).exception()
        with pytest.warns(LostRunsWarning, match="lost all 5 runs .BrokenProcessPool: .* made here instead"):
            found = sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=executor)
    assert found.log_z == HERE["dense"].estimate.log_z
    assert "5 more runs were lost by the workers" in found.status
    assert "after which all were made here" in found.status


@pytest.mark.slow
def test_what_a_pool_had_done_before_a_process_died_counts():
    with processes(1) as executor:
        found = list(spread(executor, killed_by_three, [1, 2, 3, 4]))
    assert found[:2] == [10, 20]
    assert all(isinstance(each, Lost) and "BrokenProcessPool" in each.why for each in found[2:])


def killed_by_three(number):
    if number == 3:
        import time

        time.sleep(0.5)  # the answers of the others are on their way
        os._exit(1)
    return 10 * number


def test_all_lost_are_made_here_with_a_warning_and_no_more_are_given_away():
    executor = AtOnce(*range(100))
    path = path_to(MODELS["dense"])
    with using_executor(executor), crew_for(path) as crew:
        betas = np.linspace(0.0, 1.0, 20)
        with pytest.warns(LostRunsWarning, match="lost all 3 runs"), clock.counting_operations() as counted:
            first = list(populations(crew, path, betas, Layout(3, 2, 32), np.random.default_rng(0)))
        second = list(populations(crew, path, betas, Layout(3, 2, 32), np.random.default_rng(0)))
        assert executor.given == 3
        assert counted.count == pytest.approx(3 * operations(path.engine, 20, 64))
    assert [part.log_z.tolist() for part in first] == [part.log_z.tolist() for part in second]


def test_an_executor_that_is_shut_down_loses_all():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.warns(LostRunsWarning, match="cannot schedule new futures after shutdown"):
        found = sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=executor)
    assert found.log_z == HERE["dense"].estimate.log_z


@pytest.mark.parametrize("error", [MemoryError(), ConnectionError("gone"), pickle.PicklingError("no"), SystemExit(1)])
def test_whatever_a_worker_dies_of_is_told(error):
    found = sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=AtOnce(2, error=error))
    assert type(error).__name__ in found.status


def test_a_run_that_is_cancelled_is_lost():
    future = Future()
    future.cancel()
    future.set_running_or_notify_cancel()

    class Cancelling(AtOnce):
        def submit(self, work, /, *arguments):
            return future if self.given == 2 and super().submit(work, *arguments) else super().submit(work, *arguments)

    found = sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=Cancelling())
    assert "1 more run was lost by the workers (CancelledError)" in found.status


def test_an_error_of_ours_is_an_error():
    with pytest.raises(ModelError, match="no model"):
        sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=AtOnce(2, error=ModelError("no model")))


def test_long_reasons_are_cut_short():
    with using_executor(AtOnce(error=ValueError("x" * 10_000))):
        found = list(spread(AtOnce(0, error=ValueError("x" * 10_000)), abs, [1]))
    assert len(found[0].why) < 250


# --- interrupts -----------------------------------------------------------------------------------------------------


class Hanging(AtOnce):
    """All but one of the runs are done at once; that one never is."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        self.hanging = Future()

    def submit(self, work, /, *arguments):
        done = super().submit(work, *arguments)
        return self.hanging if self.given - 1 == self.number else done


@pytest.fixture
def interrupt_after():
    """Return how to be interrupted after some seconds, also where tests run in the background and ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda seconds: threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_keeps_what_is_done_and_cancels_the_rest(interrupt_after):
    executor = Hanging(1)
    interrupt_after(0.5)
    found = sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=executor)
    assert found.interrupted
    assert found.details["states"] == 600
    assert executor.hanging.cancelled()


def test_an_interrupted_sample_has_states_of_the_groups_that_are_done(interrupt_after):
    executor = Hanging(1)
    interrupt_after(0.5)
    with pytest.warns(InaccurateWarning, match="interrupted"):
        x = sz.sample(MODELS["dense"], 20, "annealing", executor=executor, **OPTIONS)
    assert x.shape == (20, MODELS["dense"].n)
    executor = Hanging(0)
    interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        sz.sample(MODELS["dense"], 20, "annealing", executor=executor, **{**OPTIONS, "runs": 1})


def test_an_interrupt_before_anything_is_done_is_one(interrupt_after):
    executor = Hanging(0)
    interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        sz.log_z(MODELS["dense"], "annealing", **{**OPTIONS, "runs": 1}, executor=executor)
    assert executor.hanging.cancelled()


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["tcp://127.0.0.1:8786", 4, [], object(), ThreadPoolExecutor])
@pytest.mark.parametrize("verb", [sz.log_z, sz.marginals, lambda model, **options: sz.sample(model, 2, **options)])
def test_what_takes_no_work_is_refused_before_any(monkeypatch, wrong, verb):
    monkeypatch.setattr(sz.Auto, "_solve", None)
    with pytest.raises(OptionError, match=r"executor is .*; it must be a Dask client, or an executor"):
        verb(MODELS["grid"], executor=wrong)


@pytest.mark.parametrize("method", ["exact", "bp", "mf"])
def test_methods_without_runs_refuse_it(method):
    with pytest.raises(
        OptionError, match=f"method '{method}' has no runs .*; these methods do: auto, annealing, states"
    ):
        sz.log_z(MODELS["grid"], method, executor=AtOnce())


def test_a_submit_that_returns_no_future_is_refused():
    class Wrong:
        def submit(self, *_):
            return 3

    with pytest.raises(OptionError, match=r"returns a int; it must be a concurrent\.futures\.Future"):
        sz.log_z(MODELS["grid"], "annealing", **OPTIONS, executor=Wrong())


def test_an_asynchronous_client_is_refused():
    class Client:
        asynchronous = True

        def submit(self): ...
        def get_executor(self, **_): ...

    with pytest.raises(OptionError, match="asynchronous Dask client"):
        as_executor(Client())


def test_no_method_has_an_option_of_that_name():
    assert not [name for name, known in sz.METHODS.items() if "executor" in [each.name for each in fields(known)]]


def test_workers_are_counted():
    assert worker_count(None) == worker_count(AtOnce()) == 1
    with ThreadPoolExecutor(5) as executor, using_executor(executor):
        assert worker_count(current_executor()) == 5
    assert current_executor() is None


class _Library:
    """Linear algebra whose threads can be counted; that of numpy minds which thread sets them."""

    def __init__(self):
        self.count = 4

    def limit(self, limits, user_api):
        before, self.count = self.count, limits
        return SimpleNamespace(restore_original_limits=lambda: setattr(self, "count", before))


@pytest.mark.parametrize("first", ["here", "there"])
def test_threads_of_linear_algebra_are_put_back_whoever_ends_first(monkeypatch, first):
    """They are the process's: a thread that ends a block must not undo, or keep, the limit of another."""
    library = _Library()
    monkeypatch.setattr(threads, "_controller", lambda: library)
    monkeypatch.setattr(threads, "_linear_algebra", threads._LinearAlgebra())
    begun, to_end = threading.Event(), threading.Event()

    def other():
        with using_threads(1):
            begun.set()
            to_end.wait(10)

    thread = threading.Thread(target=other)
    with using_threads(2):
        assert library.count == 2
        thread.start()
        begun.wait(10)
        assert library.count == 1
        with using_threads(3):
            assert library.count == 1
        if first == "there":
            to_end.set()
            thread.join()
            assert library.count == 2
    assert library.count == (1 if first == "here" else 4)
    to_end.set()
    thread.join()
    assert library.count == 4


# --- Dask -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served():
    """The address of a scheduler with a worker of two threads, all in this process."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, protocol="tcp://") as made:
        yield made.scheduler_address


def test_dask_gives_the_same_answer(served):
    import distributed

    with distributed.Client(served, set_as_default=False) as client:
        for name, model in MODELS.items():
            assert_the_same(sz.marginals(model, "annealing", **OPTIONS, executor=client), name)
        assert worker_count(as_executor(client)) == 2


def test_dask_that_is_gone_loses_all(served):
    import distributed

    client = distributed.Client(served, set_as_default=False)
    client.close()
    with pytest.warns(LostRunsWarning, match="lost all 5 runs"):
        found = sz.log_z(MODELS["dense"], "annealing", **OPTIONS, executor=client)
    assert found.log_z == HERE["dense"].estimate.log_z


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_in_the_middle_costs_no_more_than_its_runs():
    """Dask gives them to the others, so the answer is the same; without a second worker they would be made here."""
    distributed = pytest.importorskip("distributed")
    model, options = sz.generators.spin_glass_3d(8, 0.5, seed=0), {"population": 2000, "runs": 6}
    here = sz.log_z(model, "annealing", **options)
    setting = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**setting) as made, distributed.Client(made, set_as_default=False) as client:
        processes = list(client.run(os.getpid).values())
        sz.log_z(model, "annealing", population=64, runs=2, executor=client)  # which loads what is compiled
        timer = threading.Timer(0.7, lambda: os.kill(processes[0], signal.SIGKILL))
        timer.start()
        found = sz.log_z(model, "annealing", **options, executor=client)
        timer.join()
        assert processes[0] not in client.run(os.getpid).values()
    assert (found.log_z, found.std_error) == (here.log_z, here.std_error)


@pytest.fixture
def run(run):
    """Run the command line in a folder with the files that it reads."""
    sz.write(MODELS["dense"], "m.npz")
    return run


SET = [word for key, value in OPTIONS.items() for word in ("-s", f"{key}={value}")]


def test_the_shell_sends_runs_to_dask(run, served, monkeypatch):
    given = []
    monkeypatch.setattr("spectralz.sampling.spread.spread", lambda *all_: given.extend(all_[2]) or spread(*all_))
    code, out, err = run("solve", "m.npz", "-m", "annealing", *SET, "--dask", served, "--json")
    assert code == 0, err
    assert json.loads(out)["log_z"] == HERE["dense"].estimate.log_z
    assert len(given) == OPTIONS["runs"]
    for name, words in {"there.npy": ["--dask", served], "here.npy": []}.items():
        code, _, err = run("sample", "m.npz", name, "-n", 10, "-m", "annealing", *SET, *words)
        assert code == 0, err
    assert np.array_equal(np.load("there.npy"), np.load("here.npy"))
    assert len(given) == 2 * OPTIONS["runs"]


@pytest.mark.parametrize("command", [("solve", "m.npz"), ("sample", "m.npz", "x.npy")])
def test_the_shell_says_that_there_is_no_scheduler(run, monkeypatch, command):
    pytest.importorskip("distributed")
    monkeypatch.setattr("spectralz._support.executors.SECONDS_TO_CONNECT", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code, out, err = run(*command, "--dask", f"tcp://127.0.0.1:{port}")
    assert (code, out) == (2, "")
    assert f"no Dask scheduler answers at 'tcp://127.0.0.1:{port}'" in err.replace("\n", " ")
    assert "Traceback" not in err
    code, _, err = run(*command, "--dask", "nonsense")
    assert code == 2
    assert "must look like tcp://10.0.0.1:8786" in err.replace("\n", " ")


def test_the_shell_refuses_methods_without_runs(run, served):
    code, _, err = run("solve", "m.npz", "-m", "exact", "--dask", served)
    assert code == 2
    assert "these methods do: auto, annealing, states" in err.replace("\n", " ")
