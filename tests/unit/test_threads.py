"""How many threads are used, and that results do not depend on it."""

import os
import subprocess
import sys

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import threads
from spectralz._support.threads import NO_MATRICES, available_cores, thread_count, using_threads
from spectralz.sampling.path import path_to
from spectralz.sampling.spread import Crew, crew_for

# Each of several components of the code: sweeps of a cold grid and of a dense model, a matrix product in the
# marginals of many states, whose sums are long enough for linear algebra to divide them among threads.
MODELS = {
    "grid": sz.generators.grid(side=5, strength=1.5, seed=0),
    "dense": sz.generators.complete(n=24, strength=0.4, seed=1),
}


def blas_threads():
    return {library["num_threads"] for library in threads._controller().info() if library["user_api"] == "blas"}


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(sz.Annealing(population=11_000, runs=1), marks=pytest.mark.slow),
        sz.States(population=1000, runs=2, max_states=20_000),
    ],
    ids=["annealing", "states"],
)
def test_results_do_not_depend_on_the_number_of_threads(name, method):
    model = MODELS[name]
    found = [sz.marginals(model, type(method)(**{**vars(method), "threads": count})) for count in (1, 2, 3)]
    drawn = [sz.sample(model, 50, type(method)(**{**vars(method), "threads": count})) for count in (1, 2, 3)]
    for other, states in zip(found[1:], drawn[1:], strict=True):
        assert other.estimate.log_z == found[0].estimate.log_z
        assert other.estimate.std_error == found[0].estimate.std_error
        assert other.estimate.details == found[0].estimate.details
        assert np.array_equal(other.mean, found[0].mean)
        assert np.array_equal(other.pair_mean, found[0].pair_mean)
        assert np.array_equal(states, drawn[0])


@pytest.mark.parametrize("method", ["ep", "sdp"])
def test_matrices_depend_on_it_only_by_rounding(method):
    model = sz.generators.complete(n=520, strength=0.01, seed=0)
    options = {"restarts": 0} if method == "ep" else {}
    one, two = (sz.log_z(model, method, **options, threads=count) for count in (1, 2))
    assert two.log_z == pytest.approx(one.log_z, rel=1e-10)  # sums of 520 terms, of a few factorizations


def test_small_matrices_take_one_thread_whatever_is_asked():
    with using_threads(2, threads.LARGEST_SMALL):
        assert blas_threads() == {1}
        assert thread_count() == 2
    with using_threads(2, threads.LARGEST_SMALL + 1):
        assert blas_threads() == {2}
    with using_threads(1):
        assert blas_threads() == {1}
    with using_threads(3, NO_MATRICES):
        assert blas_threads() == {1}


def test_inside_a_block_the_last_number_counts_and_none_changes_nothing():
    with using_threads(3):
        with using_threads(None):
            assert thread_count() == 3
        with using_threads(1):
            assert thread_count() == 1
        assert thread_count() == 3


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(sz.log_z, marks=pytest.mark.slow),
        sz.marginals,
        lambda *arguments, **options: sz.sample(arguments[0], 3, arguments[1], **options),
    ],
)
def test_the_option_reaches_the_runs(monkeypatch, verb):
    seen = []
    original = Crew.__init__

    def watched(self, pool, count):
        original(self, pool, count)
        assert pool._max_workers == self.threads
        seen.append(self.threads)

    monkeypatch.setattr(Crew, "__init__", watched)
    model = sz.generators.complete(n=8, strength=0.5, seed=0)
    verb(model, "annealing", population=20, runs=1, threads=3)
    verb(model, "states", population=20, threads=5)
    verb(model, "auto", exclude=["exact", "quadrature"], budget=0.05, threads=4)
    assert set(seen) == {3, 5, 4}
    seen.clear()
    sz.bounds(model, budget=1.0, threads=6)
    sz.compare(model, ["states", sz.Annealing(threads=2)], threads=7)
    assert set(seen) == {6, 7, 2}


@pytest.mark.parametrize("count", [0, -1, 1.5, "two", True])
def test_bad_numbers_are_refused(count):
    model = sz.generators.complete(n=4, strength=0.5, seed=0)
    for ask in (
        lambda: sz.log_z(model, "annealing", threads=count),
        lambda: sz.log_z(model, threads=count),
        lambda: sz.bounds(model, threads=count),
        lambda: sz.compare(model, ["mf"], threads=count),
    ):
        with pytest.raises(sz.errors.OptionError, match="threads is"):
            ask()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="there is no affinity here")
def test_the_default_is_the_cores_that_the_process_may_use(monkeypatch):
    for name in threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    assert thread_count() == available_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


@pytest.mark.parametrize(("text", "cores"), [("max 100000", 7), ("150000 100000", 2), ("10 100000", 1), ("what", 7)])
def test_a_container_s_quota_counts(monkeypatch, tmp_path, text, cores):
    monkeypatch.setattr(os, "process_cpu_count", lambda: 7, raising=False)
    (tmp_path / "cpu.max").write_text(text)
    monkeypatch.setattr(threads, "QUOTA_FILE", tmp_path / "cpu.max")
    assert available_cores() == cores


@pytest.mark.slow
@pytest.mark.parametrize("name", threads.VARIABLES)
def test_a_worker_of_a_sweep_has_one_thread(name):
    others = {key: value for key, value in os.environ.items() if key not in threads.VARIABLES}
    code = "from spectralz._support.threads import thread_count; print(thread_count())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**others, name: "1"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("text", ["0", "many", "2,2", ""])
def test_variables_that_make_no_sense_are_not_heard(monkeypatch, text):
    for name in threads.VARIABLES:
        monkeypatch.setenv(name, text)
    assert thread_count() == available_cores()


@pytest.mark.slow
def test_an_exact_answer_does_not_look_for_libraries_of_linear_algebra():
    code = (
        "import sys\nimport spectralz as sz\nsz.log_z(sz.generators.grid(3, 1.0, seed=0))\n"
        "print('threadpoolctl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "model",
    [sz.generators.complete(30, 0.3, 0), sz.generators.complete(30, 1e4, 0), sz.generators.rbm(40, 20, 0.5, 0)],
    ids=["dense", "dense in double", "bipartite"],
)
def test_matrix_products_of_sweeps_have_one_thread_each(model):
    """They are made in threads of our own, a chunk of states each."""
    path = path_to(model)
    with using_threads(2), crew_for(path):
        assert path.engine.multiplies
        assert blas_threads() == {1}
