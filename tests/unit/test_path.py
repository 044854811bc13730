"""Paths are values: they travel to other processes, and nothing is measured again there."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from dataclasses import fields

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import clock
from spectralz._support.deadline import Deadline
from spectralz.methods.matrix_product import _heavy_states
from spectralz.sampling.path import from_coins, from_fields, from_model, from_subgraph, path_to
from spectralz.sampling.population import carry
from spectralz.sampling.sweeps import operations, quench, relax, seconds_per_sweep

MACHINE = sz.generators.rbm(20, 12, 0.5, 0)
DENSE = sz.generators.complete(n=24, strength=0.4, seed=1)
GRID = sz.generators.grid(side=6, strength=3.0, seed=0)
POINTS = np.linspace(0.0, 1.0, 40)
PATHS = {
    "collapsed": lambda: path_to(MACHINE),
    "from fields": lambda: from_fields(MACHINE, np.linspace(-1.0, 1.0, 32), sides=path_to(MACHINE).sides),
    "dense": lambda: path_to(DENSE),
    "sparse": lambda: path_to(GRID),
    "clusters": lambda: path_to(sz.generators.torus(rows=16, columns=16, strength=0.5), clusters=None),
    "subgraph": lambda: from_subgraph(path_to(GRID), 3),
    "coins": lambda: from_coins(GRID),
    "double, sparse": lambda: path_to(GRID, in_double=True),
    "double, dense": lambda: path_to(1e4 * DENSE),
}


@contextmanager
def no_pilots():
    """Let a short run that looks for a base be a failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spectralz.sampling.path.short_run", lambda *_: pytest.fail("a pilot was run"))
        yield


def random_states(count, n):
    return np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(count, n))


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_has_traveled_gives_the_same_digits(name):
    path = PATHS[name]()
    here = carry(path, POINTS, 4, 25, np.random.default_rng(0))
    assert "engine" in vars(path)
    copy = pickle.loads(pickle.dumps(path))
    assert set(vars(copy)) == {each.name for each in fields(path)}  # its engine is not among them
    there = carry(copy, POINTS, 4, 25, np.random.default_rng(0))
    assert type(copy.engine) is type(path.engine)
    assert copy.engine is not path.engine
    for each in fields(here):
        assert np.array_equal(getattr(here, each.name), getattr(there, each.name)), each.name


def test_a_path_between_models_travels_too():
    path, x = from_model(DENSE, 1.1 * DENSE), random_states(10, DENSE.n)
    here = relax(path, x, 3, np.random.default_rng(0))
    assert np.array_equal(here, relax(pickle.loads(pickle.dumps(path)), x, 3, np.random.default_rng(0)))


def test_pilots_are_run_once_when_a_path_is_made():
    text = pickle.dumps(path_to(MACHINE))
    with no_pilots():
        path = pickle.loads(text)
        carry(path, POINTS, 1, 64, np.random.default_rng(0))
        quench(path, random_states(5, path.n))
        with pytest.raises(pytest.fail.Exception, match="a pilot was run"):
            path_to(MACHINE)  # or this would show nothing


def test_quenches_and_relaxing_states_need_no_pilots():
    states = random_states(30, MACHINE.n)
    with no_pilots():
        path = from_coins(MACHINE)
        ends = quench(path, states)
        relax(path, states, 3, np.random.default_rng(0))
        heavy = _heavy_states(MACHINE, states, np.random.default_rng(0))
    assert np.all(MACHINE.log_weight(ends) >= MACHINE.log_weight(states))
    assert {state.tobytes() for state in ends} <= {state.tobytes() for state in heavy}


def test_without_time_for_pilots_a_machine_begins_from_its_own_fields():
    model = sz.RBM(np.random.default_rng(0).normal(size=(30, 20)), np.full(30, 0.3)).to_ising()
    with Deadline.after(0.1).in_force():
        np.testing.assert_array_equal(path_to(model).base, model.field)
    assert not np.array_equal(path_to(model).base, model.field)


def test_the_seconds_of_a_sweep_do_not_depend_on_the_machine_if_operations_are_counted():
    path = path_to(sz.generators.grid(10, 1.0, 0))
    with clock.counting_operations():
        assert seconds_per_sweep(path) == pytest.approx(operations(path.engine, 1, 1) / clock.OPERATIONS_PER_SECOND)
