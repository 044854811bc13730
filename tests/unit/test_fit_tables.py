"""What a fit gives to people with tables: 0/1 parameters, DataFrames, predictability, networks and bootstraps."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import spectralz as sz
from spectralz.errors import OptionError
from spectralz.learning import goodness
from spectralz.show import maps
from tests.reference.states import all_states

COUNTS = {(0, 0): 40, (0, 1): 25, (1, 0): 30, (1, 1): 55}
PAIR = np.repeat(np.array(list(COUNTS)), list(COUNTS.values()), axis=0)


@pytest.fixture(scope="module")
def fit():
    truth = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3)], [0.6, -0.4, 0.5], field=[0.2, 0, 0, -0.3])
    return sz.fit(sz.sample(truth, 800, seed=3), names=list("abcd"))


# ------------------------------------------------------------------------------------------------ zeros and ones


def test_parameters_of_zeros_and_ones_are_log_odds():
    found = sz.fit(PAIR).parameters_in("01")
    n00, n01, n10, n11 = COUNTS.values()
    assert found.parameters == ((0,), (1,), (0, 1))
    wanted = [np.log(n10 / n00), np.log(n01 / n00), np.log(n11 * n00 / (n10 * n01))]
    assert found.estimate == pytest.approx(wanted, abs=1e-7)
    errors = [1 / n10 + 1 / n00, 1 / n01 + 1 / n00, 1 / n00 + 1 / n01 + 1 / n10 + 1 / n11]
    assert found.std_error == pytest.approx(np.sqrt(errors), rel=1e-6)
    assert found.z == pytest.approx(found.estimate / found.std_error)


def test_both_forms_give_the_same_differences_of_log_weights(fit):
    found = fit.parameters_in("01")
    bits = (all_states(4) + 1) // 2
    log_weight = bits @ found.estimate[:4]
    for (i, j), weight in zip(fit.edges.tolist(), found.estimate[4:].tolist(), strict=True):
        log_weight = log_weight + weight * bits[:, i] * bits[:, j]
    off = log_weight - fit.model.log_weight(all_states(4))
    assert off == pytest.approx(np.full(16, off[0]), abs=1e-12)


def test_without_errors_there_are_still_estimates(fit):
    sparse = sz.fit(fit.table.states, penalty="l1", strength=0.02)
    assert np.all(np.isnan(sparse.parameters_in("01").std_error))
    given = sz.fit(PAIR, fixed={(0, 1): 0.5}).parameters_in("pm1")
    assert (given.estimate[2], given.std_error[2]) == (0.5, 0.0)
    assert np.isnan(given.z[2])
    with pytest.raises(OptionError, match="values is 'binary'"):
        fit.parameters_in("binary")


def test_tables_have_a_row_per_parameter(fit):
    frame = fit.to_pandas()
    assert list(frame.columns) == ["first", "second", "estimate", "std_error", "z", "p_value"]
    assert len(frame) == 10
    assert frame.iloc[4][["first", "second"]].tolist() == ["a", "b"]
    assert frame["estimate"].to_numpy() == pytest.approx(np.concatenate([fit.model.field, fit.model.edges()[1]]))
    assert fit.wald().to_pandas().equals(frame)
    fixed = sz.fit(PAIR, fixed={(0, 1): 0.5})
    assert (len(fixed.to_pandas()), len(fixed.wald().to_pandas())) == (3, 2)


# ------------------------------------------------------------------------------------------------ predictability


def test_predictability_is_the_variance_of_conditional_means(fit, monkeypatch):
    states = all_states(4)
    p = np.exp(fit.model.log_weight(states) - sz.log_z(fit.model).log_z)
    pairs, J = fit.model.edges()
    matrix = np.zeros((4, 4))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = J
    conditional = np.tanh(states @ matrix + fit.model.field)
    mean = p @ conditional
    wanted = (p @ conditional**2 - mean**2) / (1 - mean**2)
    found = fit.predictability()
    assert np.asarray(found) == pytest.approx(wanted, abs=1e-12)
    assert found.names == tuple("abcd")
    monkeypatch.setattr(goodness, "MOST_SPINS_OF_STATES", 3)
    drawn = fit.predictability(seed=4)
    assert np.all(np.abs(drawn.share - wanted) < 5 * drawn.std_error)
    assert np.all(drawn.std_error < 0.02)
    assert str(drawn).splitlines()[1].startswith("b")
    assert drawn.to_pandas()["share"].to_numpy() == pytest.approx(drawn.share)
    axes = drawn.plot(Figure().subplots())
    assert [label.get_text() for label in axes.get_yticklabels()][-1] == "b"


def test_a_variable_that_nothing_explains_has_share_zero():
    found = sz.fit(PAIR, graph=[]).predictability()
    assert found.share == pytest.approx([0.0, 0.0], abs=1e-12)


# ------------------------------------------------------------------------------------------------------ networks


def test_a_network_has_circles_and_lines_by_sign_and_size(fit):
    axes = fit.plot_network(Figure().subplots())
    lines = axes.collections[0]
    J = fit.model.edges()[1]
    assert len(axes.patches) == 4
    assert [text.get_text() for text in axes.texts] == list("abcd")
    widths, colors = np.array(lines.get_linewidths()), lines.get_colors()
    assert np.argmax(widths) == np.argmax(np.abs(J))
    strong = np.abs(J) > 2 * fit.coupling_error
    assert set(np.round(colors[strong, 3], 2)) == {maps.CLEAR}
    assert set(np.round(colors[~strong, 3], 2)) == {maps.FAINT}
    assert np.array_equal(colors[:, 0] > colors[:, 2], J > 0)  # red is positive


def test_names_of_forty_variables_do_not_overlap():
    truth = sz.generators.chain(n=40, strength=0.4)
    names = [f"item number {k}" for k in range(40)]
    found = sz.fit(sz.sample(truth, 300, seed=1), graph=truth, names=names, likelihood=False)
    side = maps._side(40)
    figure = Figure(figsize=(side, side), dpi=100)
    axes = found.plot_network(figure.subplots())
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    touching = sum(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert touching == 0
    assert min(text.get_fontsize() for text in axes.texts) >= 7


@pytest.mark.parametrize("count", [5, 40])
def test_names_beside_a_matrix_do_not_overlap(count):
    import matplotlib.pyplot as plt

    names = [f"a long name {k}" for k in range(count)]
    axes = sz.Ising.from_edges(count, [(0, 1)], [1.0], names=names).plot()
    axes.figure.draw_without_rendering()
    for labels, side in ((axes.get_xticklabels(), 0), (axes.get_yticklabels(), 1)):
        ends = sorted(tuple(label.get_window_extent().get_points()[:, side]) for label in labels)
        assert all(after[0] >= before[1] - 1.0 for before, after in pairwise(ends))
    plt.close(axes.figure)


# ----------------------------------------------------------------------------------------------------- bootstraps


def test_repetitions_of_a_saturated_model_are_log_odds_of_drawn_tables():
    found = sz.fit(PAIR).bootstrap(20, seed=5)
    rows = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]], dtype=np.int8)
    order = {tuple(row): k for k, row in enumerate(sz.fit(PAIR).table.distinct().states.tolist())}
    share = np.array(list(COUNTS.values())) / 150
    of_order = [order[tuple(row)] for row in rows.tolist()]
    for k in range(20):
        drawn = np.random.default_rng([5, k]).multinomial(150, share[np.argsort(of_order)])
        n00, n01, n10, n11 = drawn[of_order]
        assert found.estimates[k, 2] == pytest.approx(np.log(n11 * n00 / (n10 * n01)) / 4, abs=1e-6)
    assert found.parameters == ((0,), (1,), (0, 1))
    assert found.estimate[2] == pytest.approx(np.log(55 * 40 / (25 * 30)) / 4, abs=1e-6)


@pytest.mark.parametrize("method", ["exact", "pseudo", pytest.param("sampled", marks=pytest.mark.slow)])
def test_repetitions_spread_as_standard_errors_say(fit, method):
    again = sz.fit(fit.table.states, method=method, likelihood=False)
    count = 40 if method == "sampled" else 150
    found = again.bootstrap(count, seed=1)
    ratio = found.std_error / np.concatenate([again.field_error, again.coupling_error])
    assert found.estimates.shape == (count, 10)
    assert np.sqrt(np.mean(ratio**2)) == pytest.approx(1.0, abs=0.2)
    low, high = found.intervals(0.9).T
    assert np.all((low < found.estimate) & (found.estimate < high))
    assert np.all(found.intervals(0.99)[:, 1] >= high)


@pytest.mark.slow
def test_repetitions_take_missing_cells_and_penalties(fit):
    X = fit.table.states.astype(float)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    for options in ({}, {"method": "pseudo"}, {"penalty": "l2"}):
        found = sz.fit(X, **options).bootstrap(10)
        assert np.all(np.isfinite(found.estimates))
        assert found.estimates.std(axis=0).min() > 0.0
    sparse = sz.fit(X, penalty="l1", strength=0.05)
    assert sparse.bootstrap(5).estimates.shape == (5, 10)  # couplings that are zero in the data, too


def test_the_same_seed_gives_the_same_repetitions_in_any_number_of_threads(fit, monkeypatch):
    first = fit.bootstrap(8, seed=2)
    monkeypatch.setattr(goodness, "thread_count", lambda: 1)
    assert np.array_equal(first.estimates, fit.bootstrap(8, seed=2).estimates)
    assert not np.array_equal(first.estimates, fit.bootstrap(8, seed=3).estimates)


def test_an_interrupt_returns_the_repetitions_that_are_done(fit, monkeypatch):
    done = []

    def report(task, fraction):
        done.append(fraction)
        if len(done) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(goodness, "report", report)
    found = fit.bootstrap(500)
    assert found.interrupted
    assert len(found.estimates) == 6


def test_intervals_become_a_table_and_a_picture(fit):
    found = fit.bootstrap(20)
    frame = found.to_pandas(level=0.9)
    assert list(frame.columns) == ["first", "second", "estimate", "std_error", "low", "high"]
    assert frame[["low", "high"]].to_numpy() == pytest.approx(found.intervals(0.9))
    axes = found.plot(Figure().subplots())
    assert axes.get_title() == "95% intervals of 20 repetitions"
    assert repr(found) == "Bootstrap(20 repetitions, 10 parameters)"
    with pytest.raises(OptionError, match="level is 95"):
        found.intervals(95)
    with pytest.raises(OptionError, match="count"):
        fit.bootstrap(1)
    moments = {"mean": fit.table.mean, "pair_mean": fit.table.pair_mean, "rows": 800}
    with pytest.raises(OptionError, match="needs the rows"):
        sz.fit(moments=moments).bootstrap(10)


# --------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def files(run):
    X = (sz.sample(sz.generators.chain(n=3, strength=0.5), 200, seed=4) + 1) // 2
    cells = [[str(cell) for cell in row] for row in X.tolist()]
    cells[0][1], cells[3][0], cells[5][2] = "", "NA", "NaN"
    Path("data.csv").write_text("\n".join(["a,b,c", *map(",".join, cells)]) + "\n")
    return run


def test_a_table_with_gaps_becomes_a_model_and_predictions(files):
    code, out, _ = files("fit", "data.csv", "--out", "model.npz", "--network", "net.svg")
    assert code == 0
    assert "expected moments match" in " ".join(out.split())
    assert Path("net.svg").read_text().startswith("<?xml")
    code, out, _ = files("predict", "model.npz", "data.csv", "--out", "p.csv")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines() if line.strip()[:1].isdigit()] == [
        ["1", "b"],
        ["4", "a"],
        ["6", "c"],
    ]
    table = np.loadtxt("p.csv", delimiter=",", skiprows=1)
    model = sz.read("model.npz")
    X = np.genfromtxt("data.csv", delimiter=",", skip_header=1)
    assert table == pytest.approx(sz.predict(model, X, values="01").probability, abs=1e-8)
    Path("part.csv").write_text("c,a\n1,\n")
    found = json.loads(files("predict", "model.npz", "part.csv", "--json")[1])
    wanted = sz.predict(model, [[None, None, 1]]).probability
    assert np.array(found["probability"]) == pytest.approx(wanted)


def test_a_first_line_with_gaps_is_no_header(files):
    Path("plain.csv").write_text("0,,1\n1,1,0\n,0,1\n0,0,0\n1,0,1\n1,1,1\n0,1,0\n")
    found = json.loads(files("fit", "plain.csv", "--penalty", "l2=1", "--json")[1])
    assert found["rows"] == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,1\n", "rows have 2 cells, and the model 3 variables; add a header"),
        ("a,z\n0,1\n", "the columns are a, z and the spins a, b, c: there is no spin 'z'"),
        ("a,a\n0,1\n", "two columns are called 'a'"),
        ("a,b,c\n0,1,2\n", "states must hold only 0 and 1"),
        ("a,b,c\n0,1,x\n", "'x' is not a number"),
    ],
)
def test_a_bad_table_is_a_sentence(files, text, words):
    files("fit", "data.csv", "--out", "model.npz")
    Path("bad.csv").write_text(text)
    code, _, err = files("predict", "model.npz", "bad.csv")
    assert code == 2
    assert words in " ".join(err.split())
