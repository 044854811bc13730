from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import spectralz as sz
from spectralz.errors import NotConvergedError, OptionError, SolverError, TooLargeError, UnknownMethodError
from spectralz.methods.base import Outcome

MODEL = sz.generators.complete(6, 1.0, seed=0)
HUGE = sz.generators.complete(70, 1.0, seed=0)


@dataclass(frozen=True, kw_only=True)
class Unfinished(sz.Method):
    """A user's own method, which needs no registration."""

    value: float = 1.5
    name: ClassVar[str] = "unfinished"

    def _solve(self, model):
        return Outcome(
            log_z=self.value, kind=sz.Kind.ESTIMATE, status=sz.Status("stopped after 3 iterations", converged=False)
        )


def test_a_name_with_options_and_a_method_are_the_same_call():
    by_name = sz.log_z(MODEL, "exact", order="banded", max_memory="1 GiB")
    by_value = sz.log_z(MODEL, sz.Exact(order="banded", max_memory=2**30))
    assert by_name.method == by_value.method
    assert by_name.log_z == by_value.log_z


def test_a_users_method_runs_like_ours_and_check_is_strict():
    result = sz.log_z(MODEL, Unfinished())
    assert (result.log_z, result.kind, result.lower, result.std_error) == (1.5, sz.Kind.ESTIMATE, None, None)
    assert not result.status.converged
    with pytest.raises(NotConvergedError, match="unfinished: stopped after 3 iterations"):
        result.check()
    exact = sz.log_z(MODEL)
    assert exact.check() is exact
    with pytest.raises(OptionError, match="these do: auto, exact"):
        sz.marginals(MODEL, Unfinished())


def test_nan_never_leaves_a_method():
    with pytest.raises(SolverError, match="unfinished gave log_z = nan"):
        sz.log_z(MODEL, Unfinished(value=float("nan")))


@pytest.mark.slow
def test_auto_says_what_it_would_choose_and_what_ran(clock):
    clock.step = 0.02
    assert sz.Auto(max_memory="1 GiB").choose(MODEL) == sz.Exact(max_memory=2**30)
    assert sz.log_z(MODEL).method == sz.Exact()
    assert sz.marginals(MODEL).estimate.method == sz.Exact()
    auto = sz.Auto(budget=0.5)
    for model in (HUGE, sz.generators.grid(90, 1.0, seed=0)):
        assert auto.choose(model) == auto
        result = auto.run(model)
        assert result.method == auto
        assert result.lower <= result.log_z <= result.upper


def test_unknown_names():
    with pytest.raises(UnknownMethodError, match="did you mean 'exact'"):
        sz.log_z(MODEL, "exat")
    with pytest.raises(LookupError, match="known are auto, exact"):
        sz.log_z(MODEL, "zzz")
    with pytest.raises(UnknownMethodError, match="a name or a Method"):
        sz.log_z(MODEL, 7)


def test_compare_keeps_order_and_turns_refusals_into_rows():
    table = sz.compare(HUGE, ["exact", Unfinished()])
    assert [row.method.name for row in table] == ["exact", "unfinished"]
    assert isinstance(table.rows[0].error, TooLargeError)
    assert table["unfinished"].log_z == 1.5
    assert table.reference is None
    with pytest.raises(TooLargeError):
        table["exact"]
    with pytest.raises(KeyError):
        table["bp"]
    assert sz.compare(MODEL).reference.log_z == sz.log_z(MODEL).log_z
    assert len(sz.compare(MODEL)) == len(sz.METHODS) - 1
    with pytest.raises(UnknownMethodError):
        sz.compare(MODEL, ["exact", "nonsense"])


def test_results_survive_pickling():
    result = pickle.loads(pickle.dumps(sz.log_z(MODEL, Unfinished())))
    assert result.status == "stopped after 3 iterations"
    assert not result.status.converged
    assert result.method == Unfinished()


@pytest.mark.slow
def test_describe_on_models_without_anything():
    for model in (sz.Ising([], []), sz.Ising([1.0], [[0.0]])):
        about = sz.describe(model)
        assert about["edges"] == 0
        assert about["is_forest"]
        assert about["treewidth_lower"] == about["treewidth_upper"] == 0
    about = sz.describe(HUGE)
    assert about["treewidth_lower"] == about["treewidth_upper"] == 69
    assert about["exact_memory"] is None
    large = sz.describe(sz.generators.grid(80, 1.0, seed=0))
    assert large["treewidth_upper"] == 80
    assert large["exact_memory"] is None


def test_describe_knows_a_grid():
    about = sz.describe(sz.generators.grid(10, 0.5, seed=0))
    assert (about["degree_mean"], about["degree_max"]) == (3.6, 4)
    assert not about["is_forest"]
    assert about["treewidth_lower"] == 2
    assert 10 <= about["treewidth_upper"] <= 13
    assert np.isclose(about["coupling_max"], 0.5, atol=0.01)


def test_auto_solves_components_apart_where_the_whole_is_out_of_reach():
    """Four magnets, a grid and lone spins: quadrature for the magnets, elimination for the rest."""
    block = sp.csr_array(np.full((60, 60), 0.5 / 60))
    grid = sz.generators.grid(4, 1.0, seed=0)
    coupling = sp.block_diag([block, grid.coupling, block, block, block, sp.csr_array((3, 3))], format="csr")
    field = np.concatenate([np.zeros(60), grid.field, np.linspace(-1, 1, 180), [0.5, -0.5, 0.0]])
    model = sz.Ising(field, coupling, offset=1.5)
    result = sz.log_z(model)
    parts = [
        model.submodel(np.arange(a, b)) for a, b in ((0, 60), (60, 76), (76, 136), (136, 196), (196, 256), (256, 259))
    ]
    assert result.log_z == pytest.approx(1.5 + sum(sz.log_z(part).log_z for part in parts), rel=1e-13)
    assert result.kind is sz.Kind.EXACT
    assert result.lower < result.log_z < result.upper
    assert "4 by quadrature" in result.status
    found = sz.marginals(model)
    assert np.allclose(found.mean[60:76], sz.marginals(grid).mean, atol=1e-12)
    assert np.allclose(found.mean[256:], np.tanh([0.5, -0.5, 0.0]), atol=1e-12)
    inside = np.all((found.edges >= 60) & (found.edges < 76), axis=1)
    assert np.allclose(found.pair_mean[inside], sz.marginals(grid).pair_mean, atol=1e-12)
    magnet = np.all((found.edges >= 76) & (found.edges < 136), axis=1)
    assert np.allclose(found.pair_mean[magnet], sz.marginals(parts[2]).pair_mean, atol=1e-12)
    x = sz.sample(model, 2000, seed=1).astype(float)
    spread = np.sqrt((1 - found.mean**2) / 2000)
    assert np.max(np.abs(x.mean(axis=0) - found.mean) / spread) < 4.7


def test_the_labels_of_the_paper_are_names():
    model = sz.generators.complete(8, 0.5, seed=0)
    assert set(sz.PAPER_SETTINGS) == {"Ours", "BP-200", "MF-1000", "MBE-10", "WMBE-10"}
    for label, method in sz.PAPER_SETTINGS.items():
        assert sz.log_z(model, label).log_z == sz.log_z(model, method).log_z
    assert sz.log_z(model, "BP-200").method == sz.BeliefPropagation(max_iter=200, damping=0.0, schedule="parallel")
    assert sz.log_z(model, "MBE-10").method.ibound == 10
    with pytest.raises(OptionError, match="ask for 'bp'"):
        sz.log_z(model, "BP-200", damping=0.5)


def test_a_label_in_other_letters_is_suggested():
    with pytest.raises(UnknownMethodError, match="did you mean 'BP-200'"):
        sz.log_z(sz.generators.complete(4, 0.5, seed=0), "bp-200")


def test_a_comparison_is_read_by_the_name_that_was_asked():
    model = sz.generators.grid(3, 1.0, seed=0)
    table = sz.compare(model, ["bp", "BP-200", sz.MeanField(restarts=2)])
    assert [row.name for row in table] == ["bp", "BP-200", "mf"]
    assert table["BP-200"] is table.rows[1].estimate
    assert table["bp"] is table.rows[0].estimate
    assert sz.compare(model, ["MF-1000"])["mf"].kind is sz.Kind.LOWER_BOUND  # as its method is called
    with pytest.raises(KeyError):
        table["MF-1000"]


def test_a_description_is_typed_and_a_dict_as_ever():
    about = sz.describe(sz.generators.grid(3, 1.0, seed=0))
    assert about.spins == about["spins"] == 9
    assert json.loads(json.dumps(about)) == about == about.to_dict()
    assert {**about, "spins": 1}["edges"] == about.edges == 12
    assert about | {"file": "grid"} == {**about, "file": "grid"}
    for copied in (copy.copy(about), copy.deepcopy(about), pickle.loads(pickle.dumps(about))):
        assert copied == about
        assert copied.treewidth_upper == about.treewidth_upper
    with pytest.raises(KeyError):
        about["no such name"]


def test_an_interrupt_leaves_the_methods_that_are_done(monkeypatch):
    def interrupted(self, model):
        raise KeyboardInterrupt

    monkeypatch.setattr(sz.MeanField, "run", interrupted)
    model = sz.generators.complete(6, 0.5, seed=0)
    found = sz.compare(model, ["exact", "mf", "bp"])
    assert found.interrupted
    assert [row.name for row in found] == ["exact"]
    assert found.to_dict()["interrupted"] is True
    assert not sz.compare(model, ["exact"]).interrupted
    with pytest.raises(KeyboardInterrupt):
        sz.compare(model, ["mf", "exact"])
