"""The rule of trust on evidence made by hand: every number of it from both sides, errors against literal formulas."""

from __future__ import annotations

import ast
import inspect
import math
from dataclasses import replace

import numpy as np
import pytest

from spectralz.sampling.cells import SamplingEvidence, evidence_of, log_mean
from spectralz.trust import Rules, judge
from spectralz.trust import populations as module
from spectralz.trust.populations import contradicted, without_losers

GROUPS = 16


def groups_of(weights, scatter=0.0, seed=0, groups=GROUPS):
    """Return logs of the groups' estimates of some weights: their means are exact, and they scatter by a part of them.

    Weights of cells scatter together, as those of the groups' Z do.
    """
    noise = np.random.default_rng(seed).normal(size=groups)
    noise = scatter * (noise - noise.mean()) / max(noise.std(), 1e-9)
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(weights, dtype=float) * (1.0 + noise)[:, None])


def evidence(
    weights,
    families,
    *,
    coefficients=None,
    heaviest=None,
    sources=None,
    scatter=0.01,
    covariances=None,
    light=(),
    search="",
    groups=GROUPS,
):
    """Return evidence of populations: rows of weights and families, one per cell, and what else matters."""
    weights, families = np.atleast_2d(weights).astype(float), np.atleast_2d(families).astype(float)
    count, cells = weights.shape
    c = np.atleast_2d(coefficients).astype(float) if coefficients is not None else (weights > 0.0).astype(float)
    return SamplingEvidence(
        tuple(groups_of(row, scatter, k, groups) for k, row in enumerate(weights)),
        families,
        np.full((count, cells), 0.05) if heaviest is None else np.atleast_2d(heaviest).astype(float),
        tuple(np.zeros((cells, cells)) for _ in range(count)) if covariances is None else covariances,
        (0.0,) * count,
        c / c.sum(axis=0),
        (0,) * cells if sources is None else sources,
        light,
        search,
    )


def error_of(scatter):
    """Return the standard error of the mean of the groups that ``groups_of`` makes."""
    return scatter / math.sqrt(GROUPS - 1)


# ---------------------------------------------------------------------------------------------- the answer, its error


def test_a_good_population_is_trusted():
    judged = judge(evidence([5.0], [1000.0], scatter=0.02))
    assert judged.trusted
    assert judged.why == ""
    assert judged.log_z == pytest.approx(math.log(5.0))
    assert judged.std_error == pytest.approx(error_of(0.02))


def literal_answer(seen):
    """Return Z and its two errors, from loops over populations, groups and cells."""
    z, scatter, of_families = 0.0, 0.0, 0.0
    for g, log_z in enumerate(seen.log_z):
        by_group = [sum(c * math.exp(w) for c, w in zip(seen.coefficients[g], row, strict=True)) for row in log_z]
        mean = sum(by_group) / len(by_group)
        z += mean
        scatter += sum((one - mean) ** 2 for one in by_group) / (len(by_group) - 1) / len(by_group)
        cells = range(log_z.shape[1])
        of_families += math.exp(2.0 * seen.log_scales[g]) * sum(
            seen.coefficients[g, k] * seen.coefficients[g, m] * seen.covariances[g][k, m] for k in cells for m in cells
        )
    return z, math.sqrt(scatter) / z, math.sqrt(of_families) / z


@pytest.mark.parametrize("scale", [1e-3, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_log_z_and_its_error_are_the_literal_ones(seed, scale):
    rng = np.random.default_rng(seed)
    log_z = [rng.normal(size=(groups, 3)) for groups in (8, 12, 20)]
    for one in log_z[1:]:  # no contradictions: the same means
        one += log_mean(log_z[0]) - log_mean(one)
    roots = [scale * rng.normal(size=(3, 3)) for _ in range(3)]
    coefficients = rng.random((3, 3))
    seen = SamplingEvidence(
        tuple(log_z),
        np.full((3, 3), 100.0),
        np.full((3, 3), 0.1),
        tuple(root @ root.T for root in roots),
        tuple(rng.normal(size=3)),
        coefficients / coefficients.sum(axis=0),
        (0, 3, 3),
    )
    assert contradicted(seen) == []
    z, scatter, of_families = literal_answer(seen)
    judged = judge(seen)
    assert judged.log_z == pytest.approx(math.log(z))
    assert judged.std_error == pytest.approx(max(scatter, of_families))
    assert (scatter > of_families) == (scale < 1.0)
    # A constant scales all weights and no error.
    shifted = replace(
        seen,
        log_z=tuple(one + 700.0 for one in seen.log_z),
        log_scales=tuple(one + 700.0 for one in seen.log_scales),
    )
    assert judge(shifted).log_z == pytest.approx(math.log(z) + 700.0)
    assert judge(shifted).std_error == pytest.approx(judged.std_error)


def test_populations_scatter_in_quadrature():
    seen = evidence([[3.0, 0.0], [0.0, 4.0]], [[900.0, 0.0], [0.0, 900.0]], scatter=0.1)
    error = math.hypot(3.0 / 7.0, 4.0 / 7.0) * error_of(0.1)
    judged = judge(seen)
    assert judged.log_z == pytest.approx(math.log(7.0))
    assert judged.std_error == pytest.approx(error)


@pytest.mark.parametrize("deviation", [1.0, 2.0, 10.0, 30.0])
def test_logs_that_scatter_widely_fall_short_of_the_mean(deviation):
    """Log-normal estimates of 1: their mean is 1, but the few that there are do not reach it."""
    rng, errors, short = np.random.default_rng(5), [], []
    for _ in range(400):
        logs = deviation * rng.normal(size=(32, 1)) - deviation**2 / 2.0
        judged = judge(replace(evidence([1.0], [1.0]), log_z=(logs,)))
        assert not judged.trusted  # however large the error
        short.append(-judged.log_z)
        errors.append(judged.std_error)
    if deviation < 2.5:
        assert max(errors) < 1.01  # of one group that holds it all
    else:
        assert 0.5 * np.mean(short) < np.mean(errors) < 1.5 * np.mean(short)


def test_evidence_is_what_rows_say():
    from spectralz.sampling.cells import Row

    rng = np.random.default_rng(1)
    rows = [Row(rng.normal(size=(4, 2)), rng.random(2), rng.random(2), rng.random((2, 2)), k - 0.5) for k in range(3)]
    c = np.full((3, 2), 1 / 3)
    seen = evidence_of(rows, c, [0, 2], [1.5], "no")
    for g, row in enumerate(rows):
        assert np.array_equal(seen.log_z[g], row.log_z)
        assert np.array_equal(seen.families[g], row.families)
        assert np.array_equal(seen.heaviest[g], row.heaviest)
        assert np.array_equal(seen.covariances[g], row.covariance)
        assert seen.totals[g] == pytest.approx([math.log(np.exp(row.log_z[:, k]).mean()) for k in range(2)])
    assert seen.log_scales == (-0.5, 0.5, 1.5)
    assert (seen.sources, seen.light, seen.search) == ((0, 2), (1.5,), "no")
    assert np.array_equal(seen.coefficients, c)


def test_log_means_of_nothing_are_minus_infinity():
    found = log_mean(np.array([[0.0, -math.inf, 900.0], [math.log(3.0), -math.inf, -math.inf]]))
    assert found == pytest.approx([math.log(2.0), -math.inf, 900.0 - math.log(2.0)])


# --------------------------------------------------------------------------------------------- cells that matter


def test_thirty_families_are_needed():
    assert judge(evidence([1.0], [31.0])).trusted
    judged = judge(evidence([1.0], [29.0]))
    assert not judged.trusted
    assert "only 29 independent families hold the model" in judged.why
    assert "30 are needed" in judged.why


@pytest.mark.parametrize("needed", [5.0, 100.0])
def test_the_number_of_families_is_a_rule(needed):
    assert judge(evidence([1.0], [1.03 * needed]), Rules(families=needed)).trusted
    assert not judge(evidence([1.0], [0.97 * needed]), Rules(families=needed)).trusted


def test_families_of_several_populations_count_together():
    # Half the weight each with 20 families: 40 together. One with a quarter has its weight: (1)^2 / sum (c^2 / f).
    two = evidence([[1.0], [1.0]], [[20.0], [20.0]])
    assert judge(two, Rules(families=39.0)).trusted
    assert not judge(two, Rules(families=41.0)).trusted
    uneven = evidence([[1.0], [1.0]], [[20.0], [20.0]], coefficients=[[1.0], [3.0]])
    together = 1.0 / ((1 / 4) ** 2 / 20.0 + (3 / 4) ** 2 / 20.0)
    assert judge(uneven, Rules(families=together - 1.0)).trusted
    assert not judge(uneven, Rules(families=together + 1.0)).trusted


def test_every_cell_that_matters_needs_families():
    seen = evidence([[0.7, 0.3]], [[500.0, 20.0]], sources=(0, 2))
    judged = judge(seen)
    assert not judged.trusted
    assert "phase 1 (0.3 of Z)" in judged.why
    assert "ordinary" not in judged.why
    judged = judge(evidence([[0.7, 0.3]], [[20.0, 500.0]], sources=(0, 2)))
    assert "the ordinary states (0.7 of Z)" in judged.why
    assert "phase" not in judged.why


@pytest.mark.parametrize(("share", "is_trusted"), [(0.45, True), (0.55, False)])
def test_small_cells_do_not_matter(share, is_trusted):
    # A share below half of the error
    error = error_of(0.05)
    seen = evidence([[1.0 - share * error, share * error]], [[500.0, 1.0]], sources=(0, 2), scatter=0.05)
    assert judge(seen).trusted == is_trusted
    assert judge(seen, Rules(matters=0.3)).trusted == (share < 0.3)
    assert judge(seen, Rules(matters=0.7)).trusted


def test_one_family_must_not_hold_a_cell():
    assert judge(evidence([1.0], [40.0], heaviest=[0.49])).trusted
    judged = judge(evidence([1.0], [40.0], heaviest=[0.51]))
    assert not judged.trusted
    assert "one family holds 51% of the model" in judged.why
    assert judge(evidence([1.0], [40.0], heaviest=[0.51]), Rules(heaviest=0.6)).trusted
    # Of a population that counts by half, it holds half as much.
    half = evidence([[1.0], [1.0]], [[40.0], [40.0]], heaviest=[[0.9], [0.1]])
    assert judge(half).trusted
    assert not judge(half, Rules(heaviest=0.44)).trusted
    assert judge(half, Rules(heaviest=0.46)).trusted


def test_few_groups_do_not_show_their_scatter():
    assert judge(evidence([1.0], [40.0], groups=8)).trusted
    judged = judge(evidence([1.0], [40.0], groups=7))
    assert not judged.trusted
    assert "fewer than 8 groups" in judged.why
    assert judge(evidence([1.0], [40.0], groups=7), Rules(fewest_groups=7)).trusted
    # One group has no scatter at all.
    assert judge(evidence([1.0], [40.0], groups=1, scatter=0.0)).std_error == math.inf


# ------------------------------------------------------------------------------------------------- contradictions


def contradicting(times, errors_of_families=(100.0, 100.0)):
    """Return two populations of equal weight, the second of which finds so many of their joint errors less."""
    joint = math.sqrt(sum(1.0 / f for f in errors_of_families))
    return evidence([[1.0], [math.exp(-times * joint)]], [[f] for f in errors_of_families])


def test_populations_must_not_contradict_each_other():
    assert contradicted(contradicting(3.4)) == []
    assert judge(contradicting(3.4)).trusted
    assert contradicted(contradicting(3.6)) == [(1, 0)]
    judged = judge(contradicting(3.6))
    assert not judged.trusted
    assert judged.why == "; populations contradict each other on 1 of Z"
    assert judged.doubt == "populations contradict each other on 1 of Z"
    assert judge(contradicting(3.6), Rules(contradiction=4.0)).trusted
    assert not judge(contradicting(3.4), Rules(contradiction=3.0)).trusted


def test_the_one_that_finds_less_does_not_count():
    judged = judge(contradicting(8.0))
    assert judged.log_z == pytest.approx(0.0)
    assert without_losers(contradicting(8.0)).coefficients.tolist() == [[1.0], [0.0]]
    # Without a contradiction both do.
    low = math.exp(-3.0 * math.sqrt(2.0 / 100.0))
    assert judge(contradicting(3.0)).log_z == pytest.approx(math.log(0.5 + 0.5 * low))


def test_few_families_do_not_contradict():
    few = evidence([[1.0], [1e-9]], [[9.0], [500.0]], coefficients=[[0.0], [1.0]])
    assert contradicted(few) == []
    more = evidence([[1.0], [1e-9]], [[11.0], [500.0]], coefficients=[[0.0], [1.0]])
    assert contradicted(more) == [(1, 0)]
    assert contradicted(few, Rules(few_families=8.0)) == [(1, 0)]
    # Then who finds most counts.
    assert without_losers(more).coefficients.tolist() == [[1.0], [0.0]]
    assert judge(more).log_z == pytest.approx(0.0)


def test_a_population_that_was_never_in_a_cell_loses_there():
    seen = evidence([[0.5, 0.5], [0.5, 0.0]], [[100.0, 100.0], [100.0, 0.0]], coefficients=[[1, 1], [1, 1]])
    assert contradicted(seen) == [(1, 1)]
    left = without_losers(seen)
    assert left.coefficients == pytest.approx(np.array([[0.5, 1.0], [0.5, 0.0]]))
    assert judge(seen).log_z == pytest.approx(0.0)


def test_contradictions_where_little_is_do_not_matter():
    seen = evidence([[1.0, 1e-6], [1.0, 1e-9]], [[100.0, 100.0], [100.0, 100.0]], sources=(0, 2))
    assert contradicted(seen) == [(1, 1)]
    assert judge(seen).trusted


# ------------------------------------------------------------------------------------------------------- the excess


def test_a_population_that_does_not_count_must_not_find_much_more():
    def seen(excess, families=4.0, share=0.1):
        weights = [[1.0 - share, share], [0.0, share * excess]]
        return evidence(weights, [[500.0, 100.0], [0.0, families]], coefficients=[[1, 1], [0, 0]], sources=(0, 2))

    assert judge(seen(19.0)).trusted
    judged = judge(seen(21.0))
    assert not judged.trusted
    assert "a population that does not count finds 2.1 of Z in phase 1, not 0.1" in judged.why
    assert judge(seen(21.0), Rules(excess=22.0)).trusted
    assert not judge(seen(19.0), Rules(excess=18.0)).trusted
    # Two families are too few to say anything.
    assert judge(seen(100.0, families=2.9)).trusted
    assert not judge(seen(100.0, families=2.9), Rules(excess_families=2.8)).trusted
    assert judge(seen(100.0), Rules(excess_families=4.1)).trusted
    # And it is at least half of Z, however many times what counts.
    assert judge(seen(45.0, share=0.01)).trusted
    assert not judge(seen(55.0, share=0.01)).trusted
    assert judge(seen(55.0, share=0.01), Rules(excess_share=0.6)).trusted


# ------------------------------------------------------------------------------------------------------- the search


def test_a_search_that_was_not_made_or_cut_short_is_not_trusted():
    for why in ("phases were not looked for", "the search for phases was cut short by the time"):
        judged = judge(evidence([1.0], [500.0], search=why))
        assert not judged.trusted
        assert judged.why == "; " + why
        assert judged.doubt == why


def phases(sources, share=0.1, **more):
    count = len(sources)
    weights = [1.0 - share * count, *[share] * count]
    return evidence([weights], [[500.0] * (count + 1)], sources=(0, *sources), **more)


@pytest.mark.parametrize(
    ("sources", "is_trusted"),
    [
        ((1,), True),
        ((1, 1), False),  # 2 * 1 / 2 = 1 phase was not found
        ((1, 1, 2), True),  # 2 * 1 / 4
        ((1, 1, 3), False),  # found three times tells nothing
        ((1, 1, 1, 2, 2), False),  # 3 * 2 / 6 = 1
        ((1, 1, 1, 2, 2, 2), True),  # 3 * 2 / 8
    ],
)
def test_phases_found_once_say_how_many_were_not(sources, is_trusted):
    judged = judge(phases(sources))
    assert judged.trusted == is_trusted
    assert ("were found only once, so there are likely others" in judged.why) != is_trusted
    assert judge(phases(sources), Rules(seen_once=1.01)).trusted
    assert judge(phases(sources), Rules(seen_once=0.49)).trusted == (sources == (1,))


def test_phases_that_do_not_matter_say_nothing_of_others():
    # Shares of a tenth of the error
    assert judge(phases((1, 1, 1), share=0.1 * error_of(0.05), scatter=0.05)).trusted
    assert not judge(phases((1, 1, 1), share=0.7 * error_of(0.05), scatter=0.05)).trusted


@pytest.mark.parametrize(("share", "is_trusted"), [(0.49, True), (0.51, False)])
def test_a_phase_with_most_of_z_is_found_more_than_once(share, is_trusted):
    judged = judge(phases((1,), share=share))
    assert judged.trusted == is_trusted
    assert ("was found only once" in judged.why) != is_trusted
    assert judge(phases((2,), share=share)).trusted
    assert judge(phases((1,), share=share), Rules(once_share=0.6)).trusted


def test_light_phases_add_to_the_error():
    seen = evidence([1.0], [500.0], light=(math.log(0.01), math.log(0.02)))
    judged = judge(seen)
    assert judged.std_error == pytest.approx(error_of(0.01) + 0.03)
    assert judged.log_z == pytest.approx(0.0)
    assert judged.trusted
    twice = evidence([2.0], [500.0], light=(math.log(0.01), math.log(0.02)))
    assert judge(twice).std_error == pytest.approx(error_of(0.01) + 0.015)


def test_every_reason_is_told_and_some_are_doubts():
    judged = judge(evidence([1.0], [5.0], heaviest=[0.9], search="phases were not looked for", groups=4))
    assert judged.why == (
        "; fewer than 8 groups do not show their scatter; only 5 independent families hold the model (1 of Z), "
        "30 are needed; one family holds 90% of the model; phases were not looked for"
    )
    # More states would help against all but the last.
    assert judged.doubt == "phases were not looked for"
    assert judge(evidence([1.0], [5.0])).doubt == ""


# ------------------------------------------------------------------------------------------------ numbers and rules


def test_every_number_of_trust_is_a_rule():
    """A number that decides is a field of Rules, where it has a name, a sentence, and an experiment."""
    literals = [
        (node.value, node.lineno)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    ]
    assert literals
    assert [place for place in literals if place[0] not in (0, 1, 2, 0.5)] == []
