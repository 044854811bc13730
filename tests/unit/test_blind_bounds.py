"""Bounds on models with constraints: those that cannot see them bound the model without."""

import itertools

import numpy as np
import pytest

import spectralz as sz
from spectralz.constraints import clause


@pytest.mark.parametrize("seed", range(3))
def test_every_row_is_on_its_side(seed):
    rng = np.random.default_rng(seed)
    model = sz.generators.complete(n=12, strength=0.3, seed=seed).with_constraints(
        *(clause({i: int(rng.choice([-1, 1])) for i in rng.choice(12, 3, replace=False).tolist()}) for _ in range(25))
    )
    x = np.array(list(itertools.product([-1, 1], repeat=12)), dtype=np.int8)
    truth = float(np.logaddexp.reduce(model.log_weight(x)))
    found = sz.bounds(model, exclude=["exact"], work=3e8)
    rows = {row.method: row for row in found.rows}
    assert "mf" not in rows
    assert "bethe" not in rows
    for row in found.rows:
        assert row.lower is None or row.lower <= truth
        assert row.upper is None or row.upper >= truth
    for name in ("sdp", "convex_mf", "trw"):
        assert rows[name].lower is None
        assert rows[name].upper is None or "without its constraints" in rows[name].status
    assert rows["trivial"].lower == -np.inf


@pytest.mark.parametrize("name", ["mf", "ep", "spectral", "low_rank", "quadrature", "trw", "sdp", "convex_mf"])
def test_methods_that_do_not_see_constraints_refuse_them(name):
    model = sz.Ising(np.zeros(3)).with_constraints(clause({0: 1, 1: 1, 2: 1}))
    with pytest.raises(sz.errors.OptionError, match="takes no constraints"):
        sz.log_z(model, name)


def test_auto_answers_without_exact():
    rng = np.random.default_rng(0)
    model = sz.Ising(rng.normal(size=40)).with_constraints(
        *(clause({i: int(rng.choice([-1, 1])) for i in rng.choice(40, 3, replace=False).tolist()}) for _ in range(90))
    )
    truth = sz.log_z(model, "exact").log_z
    found = sz.log_z(model, exclude=["exact"], work=1e9)
    assert found.trusted
    assert abs(found.log_z - truth) < 5.0 * found.std_error
    assert found.lower is None or found.lower <= truth <= found.upper
