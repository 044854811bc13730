"""The benchmark of trusted answers: its references against all states, and what it says of answers."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from benchmarks import first_order_models, honest_verbs, honesty, hunted_models, known_models

import spectralz as sz
from tests.helpers import with_slow
from tests.reference import states

SLOW = ["torus", "planar", "one_hot", "kings", "cubic", "linked_traps", "blocks", "potts", "copies", "strong_units"]


@pytest.mark.parametrize("family", with_slow(honesty.FAMILIES, SLOW))
def test_references_against_all_states(family):
    seen = 0
    for seed in range(8):
        known = honesty.FAMILIES[family](np.random.default_rng(seed), small=True)
        assert known.model.n <= 14
        assert known.log_z == pytest.approx(float(states.log_z(known.model)), rel=1e-12, abs=1e-12)
        seen += known.model.edge_count + known.model.higher.number
    assert seen


@pytest.mark.parametrize("family", honest_verbs.FAMILIES)
def test_means_and_temperatures_against_all_states(family):
    for seed in range(3):
        known = honesty.FAMILIES[family](np.random.default_rng(seed), small=True)
        assert known.means() == pytest.approx(states.solve(known.model)[1], abs=1e-7)
        assert known.at(1.3) == pytest.approx(float(states.log_z(1.3 * known.model)), rel=1e-12)


def test_first_order_models_are_near_coexistence():
    """Ordered and disordered states hold similar shares; within 5% of the coupling at which they are equal."""
    group = [first_order_models.Molecules(40, (2.0,)), first_order_models.Molecules(40, (-2.0,))]
    M, counts = first_order_models.magnetizations(group)
    weight = counts + 0.5 * first_order_models.coupling_of(group) * M * M
    share = np.exp(weight - weight.max())
    assert 0.3 < share[np.abs(M) > 40].sum() / share.sum() < 0.7
    assert share[np.abs(np.abs(M) - 40) <= 2].max() < 0.02 * share.max()  # a barrier is between them
    factors = [first_order_models.beside(np.random.default_rng(seed)) for seed in range(200)]
    assert 0.95 <= min(factors) < 0.98
    assert 1.02 < max(factors) <= 1.05


def test_weakly_linked_groups_against_the_sum_over_all_their_magnetizations():
    pairs, others = first_order_models.Molecules(9, (0.3, -0.3), -1.4), first_order_models.Molecules(20, (2.0,))
    groups, own, weak = [[pairs], [others, replace(others, fields=(-2.0,))], [pairs, others]], [0.2, 0.1, 0.05], 0.003
    expected = first_order_models.groups_log_z(groups, np.diag(own) + weak)
    assert hunted_models.linked_log_z(groups, own, weak) == pytest.approx(expected, rel=1e-13)


def test_states_between_phases_hold_a_share():
    group = [first_order_models.Molecules(40, (0.0, 0.0), -0.8)]
    K, peak = hunted_models.equal_peaks(group)
    M, weight = hunted_models.weights_of_sizes(group, K)
    assert 0.03 < hunted_models.share_between(group, K, peak) < 0.3
    assert weight[peak == M] - weight[0] == pytest.approx(np.log(2.0))  # +M and -M


def test_one_path_ends_in_another_phase():
    """Fields hold pairs up, which are mixed when they are cooled from coins; both phases weigh about the same."""
    group = [first_order_models.Molecules(50, (1.2, 0.9), -3.0)]
    K = first_order_models.coupling_of(group)
    from_coins, from_fields = hunted_models.cooled_from_coins, hunted_models.cooled_from_fields
    assert hunted_models.end_of_path(group, K, from_coins) < 5 < 45 < hunted_models.end_of_path(group, K, from_fields)
    shares = [hunted_models.share_missed(group, K, *paths) for paths in permutations([from_coins, from_fields])]
    assert min(shares) > 0.3
    assert sum(shares) == pytest.approx(1.0, abs=1e-3)
    assert hunted_models.share_missed(group, K, from_coins, from_coins) == 0.0


def test_planar_glasses_against_elimination():
    known = known_models.planar(np.random.default_rng(5))
    assert known.log_z == pytest.approx(sz.log_z(known.model, "exact").log_z, rel=1e-12)


def test_a_model_depends_on_its_seed_and_number_alone():
    first, again, other = (honesty.drawn("sk", 1, index)[0] for index in (0, 0, 1))
    assert first.model == again.model
    assert first.log_z != other.log_z
    assert honesty.drawn("sk", 2, 0)[0].log_z != first.log_z


def row(log_z=10.0, std_error=0.1, trusted=True, index=0, **more):
    found = {"family": "sk", "seed": 1, "index": index, "about": "", "n": 3, "truth": 10.0, "log_z": log_z}
    found |= {"std_error": std_error, "lower": None, "upper": None, "trusted": trusted, "chosen": "ep", "status": "so"}
    return {**found, "seconds": 1.0, **more}


def test_the_judgment():
    assert honesty.ratio(row(10.3)) == pytest.approx(3.0)
    assert honesty.ratio(row(10.0 + 1e-12, std_error=1e-20)) == 0.0
    assert honesty.ratio(row(10.3, std_error=None)) == np.inf
    assert not honesty.is_wrong(row(10.4))
    assert honesty.is_wrong(row(9.4))
    assert not honesty.is_wrong(row(9.4, trusted=False))
    assert honesty.has_wrong_bound(row(lower=10.1))
    assert honesty.has_wrong_bound(row(upper=9.9))
    assert not honesty.has_wrong_bound(row(lower=9.9, upper=10.1))
    before, now = [row(index=0), row(10.7, index=1), row(index=2)], [row(trusted=False, index=i) for i in range(2)]
    assert honesty.lost(before, now) == [now[0]]


def test_the_table():
    rows = [row(10.1), row(9.7, index=1), row(11.0, std_error=4.0, trusted=False, index=2)]
    text = honesty.honesty_table(rows)
    assert text.count("\n") == 3
    assert "| ordinary | 3 | 67% | 3 | 50% | 2.2 | 4 | 0.25 | 1.0 |" in text
    both = honesty.honesty_table([*rows, row(family="potts")])
    assert "| first order | 1 | 100% | 0 |" in both
    summary = "2 of 3 trusted and right (67%); trusted: 1 of 2 within 2 errors (50.0%); not trusted: 1 of 1 within 3"
    assert honesty.summary(rows).startswith(summary)


@pytest.mark.parametrize("is_right", [True, False])
def test_a_run_from_the_command_line(monkeypatch, tmp_path, capsys, is_right):
    monkeypatch.setattr(honesty, "rows_of_all", lambda solve, jobs, workers: [solve(*job) for job in jobs])
    if not is_right:
        run = sz.log_z
        monkeypatch.setattr(
            sz, "log_z", lambda model, *rest, **more: run(model, *rest, **more) if rest else shifted(run(model, **more))
        )
    arguments = ["--families", "complete", "--models", "2", "--seed", "3", "--work", "1e6"]
    rows = tmp_path / "rows.json"
    assert honesty.main([*arguments, "--json", str(rows)]) == (0 if is_right else 1)
    out = capsys.readouterr().out
    assert ("beyond 5 standard errors: none" in out) == is_right
    assert ("--families complete --seed 3 --first 1 --models 1" in out) != is_right
    assert len(json.loads(rows.read_text())) == 2
    if is_right:
        assert honesty.main([*arguments, "--before", str(rows)]) == 0
        assert "not trusted now: none" in capsys.readouterr().out


def shifted(found):
    return replace(found, log_z=found.log_z + 1.0, std_error=0.01, trusted=True)


@pytest.mark.parametrize("wrong", [["--work", "1", "--budget", "1"], ["--models", "0"], ["--families", "none"]])
def test_arguments_that_are_refused(wrong):
    with pytest.raises(SystemExit):
        honesty.arguments(wrong)
