"""The diagonal SDP: against closed forms, another algorithm, general solvers, and exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.kernels.balance import components_and_balance
from spectralz.kernels.sdp import certificate as sdp_certificate
from spectralz.kernels.sdp import low_rank as sdp_low_rank
from spectralz.model.coupling.entries import coupling_of
from spectralz.parts.sdp import diagonal as sdp
from tests.helpers import heard, quadratic_on_spheres, tangent_at
from tests.reference import semidefinite


def symmetric(B):
    upper = np.triu(B, 1)
    return upper + upper.T


def random_coupling(n, seed, density=1.0):
    rng = np.random.default_rng(seed)
    return symmetric(rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < density))


def y_of(found, A):
    return -(found.diagonal + np.asarray(A.diagonal()))


def check(found, A, tol):
    """What holds of every result: feasible by eigenvalues, bounds around the optimum, gap as promised."""
    dense = A.toarray() if sp.issparse(A) else np.asarray(A)
    size = max(np.abs(dense).max(initial=0.0), 1e-300)
    if len(dense):
        assert np.linalg.eigvalsh(dense + np.diag(found.diagonal)).max() <= 1e-14 * len(dense) * size
    assert found.feasible
    assert found.lower <= found.upper
    assert found.lower == pytest.approx(found.diagonal.sum(), rel=1e-14, abs=1e-300)
    total = y_of(found, A).sum()
    assert found.gap <= tol
    assert found.upper - found.lower <= 1.001 * tol * total + 1e-14 * np.abs(np.diag(dense)).sum()
    assert found.status.converged


# --- answers that are known ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 5, 17, 60])
def test_complete_graph_of_repelling_pairs(n):
    A = -np.ones((n, n)) + np.eye(n)
    found = sz.diagonal_sdp(A)
    check(found, A, 1e-8)
    assert np.allclose(y_of(found, A), 1.0, atol=1e-7)


@pytest.mark.parametrize("n", [3, 5, 7, 21, 101, 301])
def test_odd_cycle(n):
    i = np.arange(n)
    A = sp.csr_array((-np.ones(2 * n), (np.r_[i, (i + 1) % n], np.r_[(i + 1) % n, i])), shape=(n, n))
    found = sz.diagonal_sdp(A)
    check(found, A, 1e-8)
    wanted = semidefinite.odd_cycle(n)
    assert y_of(found, A).sum() == pytest.approx(wanted.sum(), rel=1e-8)
    assert np.allclose(y_of(found, A), wanted, rtol=1e-3)


@pytest.mark.parametrize("kind", ["ferromagnet", "gauged", "tree", "even cycle"])
def test_balanced_signs_give_row_sums(kind):
    rng = np.random.default_rng(3)
    n = 30
    A = np.abs(random_coupling(n, 1))
    if kind == "gauged":
        s = rng.choice([-1.0, 1.0], n)
        A = s[:, None] * A * s
    if kind == "tree":
        A = np.zeros((n, n))
        for i in range(1, n):
            j = rng.integers(i)
            A[i, j] = A[j, i] = rng.normal()
    if kind == "even cycle":
        i = np.arange(n)
        A = np.zeros((n, n))
        A[i, (i + 1) % n] = -rng.random(n)
        A = A + A.T
    found = sz.diagonal_sdp(A)
    check(found, A, 1e-13)
    assert np.allclose(y_of(found, A), np.abs(A).sum(axis=1), rtol=1e-13)
    assert found.iterations == 0


def test_the_smallest_cases():
    assert sz.diagonal_sdp(np.zeros((0, 0))).diagonal.shape == (0,)
    alone = sz.diagonal_sdp([[2.5]])
    assert alone.diagonal.tolist() == pytest.approx([-2.5])
    assert alone.gap == 0.0
    nothing = sz.diagonal_sdp(np.zeros((4, 4)))
    assert nothing.diagonal.tolist() == [0.0] * 4
    assert nothing.lower == nothing.upper == 0.0
    pair = sz.diagonal_sdp([[0.0, -0.75], [-0.75, 0.0]])
    assert np.allclose(pair.diagonal, -0.75, rtol=1e-14)
    assert pair.feasible
    isolated = np.zeros((5, 5))
    isolated[1, 3] = isolated[3, 1] = 2.0
    assert np.allclose(sz.diagonal_sdp(sp.csr_array(isolated)).diagonal, [0, -2, 0, -2, 0])


# --- other algorithms ----------------------------------------------------------------------------------------------


@given(
    n=st.integers(3, 20),
    seed=st.integers(0, 2**32 - 1),
    density=st.sampled_from([0.15, 0.5, 1.0]),
    heavy=st.booleans(),
    integers=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_agrees_with_a_general_solver_on_any_couplings(n, seed, density, heavy, integers):
    pytest.importorskip("cvxpy", reason="the general solvers come with the extra [sdp]")
    A = random_coupling(n, seed, density)
    if heavy:
        A = np.tan(1.5 * A)
    if integers:
        A = np.rint(2 * A)
    found = sz.diagonal_sdp(A)
    check(found, A, 1e-8)
    assert -found.lower == pytest.approx(semidefinite.general_solver(A), rel=1e-6, abs=1e-7)


def with_field(A, seed):
    rng = np.random.default_rng(seed)
    return sz.Ising(rng.uniform(-1, 1, len(A)), A).absorb_field().coupling


FAMILIES = {
    "complete": lambda n: random_coupling(n, 1),
    "er": lambda n: random_coupling(n, 2, 0.5),
    "bipartite": lambda n: sz.generators.bipartite(n, 1.0, seed=3).coupling.toarray(),
    "grid": lambda n: sz.generators.grid(math.isqrt(n), 1.0, seed=4).coupling.toarray(),
}


@pytest.mark.parametrize("field", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_agrees_with_a_general_solver(n, family, field):
    pytest.importorskip("cvxpy", reason="the general solvers come with the extra [sdp]")
    A = FAMILIES[family](n)
    A = with_field(A, 5) if field else A
    found = sz.diagonal_sdp(A)
    check(found, A, 1e-8)
    assert -found.lower == pytest.approx(semidefinite.general_solver(A), rel=1e-6)


# --- symmetries ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1e9, 1e-300, 1e250])
@pytest.mark.parametrize("density", [1.0, 0.03])
def test_scale_free(scale, density):
    A = random_coupling(120, 7, density)
    one, other = sz.diagonal_sdp(A), sz.diagonal_sdp(scale * A)
    assert np.allclose(other.diagonal / scale, one.diagonal, rtol=1e-6, atol=1e-9)
    assert other.gap <= 1e-8
    assert other.lower / scale == pytest.approx(one.lower, rel=1e-8)


def test_tiny_numbers_stay_feasible():
    A = random_coupling(12, 7) * 1e-310  # below the smallest normal number
    found = sz.diagonal_sdp(A)
    big = np.ldexp(A, 1000) + np.diag(np.ldexp(found.diagonal, 1000))
    assert np.linalg.eigvalsh(big).max() <= 0.0


def test_gauge_permutation_and_diagonal():
    A = random_coupling(40, 8)
    rng = np.random.default_rng(0)
    s, order, d = rng.choice([-1.0, 1.0], 40), rng.permutation(40), rng.normal(size=40)
    base = sz.diagonal_sdp(A, 1e-11)
    gauged = sz.diagonal_sdp(s[:, None] * A * s, 1e-11)
    moved = sz.diagonal_sdp(A[np.ix_(order, order)], 1e-11)
    shifted = sz.diagonal_sdp(A + np.diag(d), 1e-11)
    assert np.allclose(gauged.diagonal, base.diagonal, rtol=1e-6)
    assert np.allclose(moved.diagonal, base.diagonal[order], rtol=1e-6)
    assert np.allclose(shifted.diagonal, base.diagonal - d, rtol=1e-6, atol=1e-6)
    assert shifted.upper == pytest.approx(base.upper - d.sum(), rel=1e-10)


def test_components_and_their_copies_are_solved_apart():
    A, B = random_coupling(15, 1), random_coupling(9, 2)
    whole = sz.diagonal_sdp(sp.block_diag([sp.csr_array(part) for part in (A, B, A)], format="csr"), 1e-11)
    parts = [sz.diagonal_sdp(part, 1e-11).diagonal for part in (A, B, A)]
    assert np.array_equal(whole.diagonal[:15], whole.diagonal[24:])
    assert np.allclose(whole.diagonal, np.concatenate(parts), rtol=1e-12)


def test_what_hangs_on_one_spin_adds_up():
    """Parts that share one spin: y adds (so do leaves), since any two X fit together at one vector."""
    A, B = random_coupling(12, 1), random_coupling(10, 2)
    whole = np.zeros((21, 21))
    whole[:12, :12] += A
    whole[11:, 11:] += B
    leaf = np.pad(whole, (0, 1))
    leaf[3, 21] = leaf[21, 3] = -0.4
    total = -sz.diagonal_sdp(A).lower - sz.diagonal_sdp(B).lower
    assert -sz.diagonal_sdp(whole).lower == pytest.approx(total, rel=1e-7)
    assert -sz.diagonal_sdp(leaf).lower == pytest.approx(total + 0.8, rel=1e-7)


@pytest.mark.parametrize("n", [150, 700])
def test_dense_and_sparse_agree(n):
    A = random_coupling(n, 4, 4 / n)
    dense, sparse = sz.diagonal_sdp(A), sz.diagonal_sdp(sp.csr_array(A))
    check(dense, A, 1e-8)
    check(sparse, A, 1e-8)
    assert dense.lower == pytest.approx(sparse.lower, rel=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_very_unlike_sizes(seed):
    rng = np.random.default_rng(seed)
    A = symmetric(rng.choice([-1.0, 1.0], (30, 30)) * np.exp(8 * rng.normal(size=(30, 30))))
    check(sz.diagonal_sdp(A), A, 1e-8)
    A = random_coupling(30, seed)
    A[15:, :] *= 1e-12
    A[:15, 15:] *= 1e-12
    check(sz.diagonal_sdp(A), A, 1e-8)


# --- the proof -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_proof_is_sound_on_the_very_edge():
    """Singular matrices with y changed in its last digits: whoever forgets the margin for rounding is caught here."""
    proven = {True: 0, False: 0}
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 8))
        V = rng.integers(-3, 4, (n, max(1, n - 2))).astype(float)
        M = V @ V.T  # semidefinite and singular, in whole numbers
        y = np.diag(M).copy()
        C = np.diag(y) - M
        if np.any(y <= 0):
            continue
        for k in (-3, -2, -1, 0, 1, 40):
            moved = y * (1.0 + k * 2.0**-52)
            for kind in (np.asarray, sp.csr_array):
                claimed = sdp_certificate.is_dominated(kind(C), moved)
                if claimed:
                    assert semidefinite.is_semidefinite(C, moved), (seed, k, kind)
                proven[claimed] += 1
    assert proven[True] > 20
    assert proven[False] > 20


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [5, 40, 300])
def test_the_proof_gives_away_little(kind, n):
    C = random_coupling(n, n, 1.0 if n < 100 else 0.02)
    y = np.abs(C).sum(axis=1) + 0.01
    top = np.linalg.eigvalsh(C / np.sqrt(np.outer(y, y)))[-1]
    assert sdp_certificate.is_dominated(kind(C), y * top * (1 + 1e-9))
    assert not sdp_certificate.is_dominated(kind(C), y * top * (1 - 1e-12))


def test_no_proof_of_nonsense():
    C = random_coupling(4, 0)
    for y in ([1.0, 1.0, 1.0, 0.0], [1.0, -1.0, 1.0, 1.0], [1.0, math.nan, 1.0, 1.0], [1e-320] * 4):
        for kind in (np.asarray, sp.csr_array):
            assert not sdp_certificate.is_dominated(kind(C), np.array(y))


@pytest.mark.parametrize("n", [3, 50, 1000])
def test_the_margin_covers_the_errors_of_theorem_10_3_and_of_the_scaling(n, monkeypatch):
    import scipy.linalg.lapack as lapack

    seen = []
    dpotrf = lapack.dpotrf
    monkeypatch.setattr(lapack, "dpotrf", lambda M, **options: seen.append(M[0, 0]) or dpotrf(M, **options))
    C = random_coupling(n, 1)
    y = 2.0 * np.abs(C).sum(axis=1)
    assert sdp_certificate.is_dominated(C, y)
    u = 2.0**-53
    gamma = (n + 1) * u / (1 - (n + 1) * u)
    row_sum = (np.abs(C) / np.sqrt(np.outer(y, y))).sum(axis=1).max()
    assert 1.0 - seen[0] >= gamma / (1 - gamma) * n + 6 * u * row_sum - u
    assert 1.0 - seen[0] <= 2.5 * (n + 2) ** 2 * u + 9 * u * row_sum


@pytest.mark.parametrize("tiny", [1e-30, 1e-200, 1e-310])
@pytest.mark.parametrize("seed", range(4))
def test_couplings_of_very_different_sizes(tiny, seed):
    """Three frustrated groups of their own sizes, joined by next to nothing: single precision has no room for that."""
    rng = np.random.default_rng(seed)
    n, groups = 12, np.repeat([1.0, 1e-120, 1e250], 4)
    A = np.triu(
        np.where(groups[:, None] == groups, groups * rng.normal(size=(n, n)), tiny * rng.normal(size=(n, n))), 1
    )
    A = A + A.T
    found = sz.diagonal_sdp(A)
    assert found.feasible
    assert found.status.converged
    y = -found.diagonal
    assert np.all(y > 0.0)  # as every spin is coupled
    for size in np.unique(groups):
        inside = np.ix_(groups == size, groups == size)
        alone = -sz.diagonal_sdp(A[inside]).diagonal
        joined = np.abs(A[groups == size][:, groups != size]).sum()
        assert y[groups == size].sum() == pytest.approx(alone.sum() + joined, rel=1e-5)


def test_a_spin_that_hardly_couples_does_not_overflow_single_precision():
    """A frustrated triangle with one strong side: conjugate gradients grew without bound."""
    A = np.zeros((3, 3))
    A[0, 1], A[0, 2], A[1, 2] = 0.17850080281201652, 3.13374493e-10, -5.82967610e-11
    A += A.T
    found = sz.diagonal_sdp(A)
    assert found.feasible
    # Without the weakest side it is a chain, whose optimum is the sum of its sizes; it adds at most its own size.
    chain, weakest = 2.0 * (A[0, 1] + A[0, 2]), 2.0 * abs(A[1, 2])
    assert -found.diagonal.sum() == pytest.approx(chain, abs=1e-6 * chain + weakest)


def test_proven_excess_of_a_given_diagonal():
    A = random_coupling(20, 3)
    top = np.linalg.eigvalsh(A)[-1]
    assert sdp.proven_excess(coupling_of(A), np.full(20, -2 * top)) == 0.0
    on_the_edge = sdp.proven_excess(coupling_of(A), np.full(20, -top))
    assert 0.0 < on_the_edge < 1e-10
    assert sdp.proven_excess(coupling_of(A), np.full(20, -0.99 * top)) is None
    assert sdp.proven_excess(coupling_of(A), np.zeros(20)) is None
    assert sdp.proven_excess(coupling_of(np.diag([-1.0, 2.0])), np.array([1.0, -2.0])) == 0.0
    assert sdp.proven_excess(coupling_of(np.diag([-1.0, 2.0])), np.array([1.0, -1.0])) is None


# --- the way there -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [0, 1, 3])
@pytest.mark.parametrize("n", [30, 300])
def test_stopping_early_is_reported_and_feasible(max_iter, n, monkeypatch):
    monkeypatch.setattr(sdp, "MOST_SPINS_IN_DOUBLE", 0)
    A = random_coupling(n, 5)
    found, best = sz.diagonal_sdp(A, max_iter=max_iter), sz.diagonal_sdp(A)
    assert not found.status.converged
    assert found.feasible
    assert found.gap > 1e-8
    assert f"{found.gap:.1e}" in found.status
    assert np.linalg.eigvalsh(A + np.diag(found.diagonal)).max() <= 0.0
    assert found.lower <= best.lower * (1 - 1e-8)
    assert found.upper >= best.upper * (1 + 1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_without_any_proof_the_row_sums_are_returned(kind, monkeypatch):
    monkeypatch.setattr(sdp, "_is_proven", lambda C, y: False)
    A = random_coupling(120, 5, 0.04)
    found = sz.diagonal_sdp(kind(A), max_iter=2)
    assert np.allclose(y_of(found, A), np.abs(A).sum(axis=1), rtol=1e-13)
    assert not found.status.converged
    assert np.linalg.eigvalsh(A + np.diag(found.diagonal)).max() <= 1e-14


def test_steps_in_double_precision_reach_what_those_in_single_do_not(monkeypatch):
    """A chain of frustrated triangles, each of which shares a spin with the next."""
    A = np.zeros((9, 9))
    for k in range(0, 7, 2):
        for i, j in ((k, k + 1), (k + 1, k + 2), (k, k + 2)):
            A[i, j] = A[j, i] = -1.0
    for coupling in (A, sp.csr_array(A)):
        check(sz.diagonal_sdp(coupling, tol=1e-12), A, 1e-12)
    monkeypatch.setattr(sdp_low_rank.Solver, "step_in_double", lambda self: None)
    assert not sz.diagonal_sdp(A, tol=1e-12).status.converged


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_start_too_narrow_is_widened(columns, sparse, monkeypatch):
    """With one column the spins are frozen in a local optimum; the certificate fails and shows the way out."""
    monkeypatch.setattr(sdp, "_columns", lambda C: columns)
    A = random_coupling(150, 9, 0.04 if sparse else 1.0)
    escapes = []
    escape = sdp_low_rank.Solver.escape
    monkeypatch.setattr(sdp_low_rank.Solver, "escape", lambda self, k: escapes.append(k) or escape(self, k))
    found = sz.diagonal_sdp(sp.csr_array(A) if sparse else A)
    assert escapes
    check(found, A, 1e-8)


def test_the_hessian_is_the_derivative_of_the_gradient():
    """The quadratic model against finite differences of <C, V V'> along the step that it proposes."""
    A = random_coupling(30, 2)
    solver = sdp_low_rank.Solver(A, 9, np.random.default_rng(0))
    for _ in range(2):
        solver.advance()
    point, y = solver.point, solver.point.y
    gradient = point.gradient()
    length = math.sqrt(float((gradient**2 / y[:, None]).sum()))
    step = solver._step(y, gradient, length)
    h = 1e-3
    forward = solver._at(point.V + h * step.tangent).value - point.value
    backward = solver._at(point.V - h * step.tangent).value - point.value
    assert (forward - backward) / (2 * h) == pytest.approx(step.slope, rel=1e-4)
    curvature = (forward + backward) / h**2
    assert curvature == pytest.approx(2 * (step.gain - step.slope), rel=1e-2)


def test_balance_is_found_by_walking():
    A = np.zeros((7, 7))
    for i, j, w in ((0, 2, 1.0), (2, 4, -1.0), (0, 4, 1.0), (1, 3, -2.0)):
        A[i, j] = A[j, i] = w
    for kind in (np.asarray, sp.csr_array):
        found = [(spins.tolist(), balanced) for spins, balanced in components_and_balance(kind(A))]
        assert found == [([0, 2, 4], False), ([1, 3], True), ([5], True), ([6], True)]


def test_the_input_is_not_changed_and_the_answer_repeats():
    for A in (random_coupling(60, 1), sp.csr_array(random_coupling(200, 1, 0.02))):
        before = A.copy()
        first, second = sz.diagonal_sdp(A), sz.diagonal_sdp(A)
        assert abs(A - before).max() == 0.0
        assert np.array_equal(first.diagonal, second.diagonal)


def test_progress_is_reported():
    with heard() as seen:
        sz.diagonal_sdp(random_coupling(80, 1))
    assert {task for task, _ in seen} == {"solving the SDP"}
    assert all(0.0 <= fraction <= 1.0 for _, fraction in seen)
    assert max(fraction for _, fraction in seen) > 0.5


@pytest.mark.parametrize(
    ("A", "options", "words"),
    [
        (np.ones((2, 3)), {}, "square"),
        ([[0.0, 1.0], [2.0, 0.0]], {}, "symmetric"),
        ([[0.0, math.nan], [math.nan, 0.0]], {}, "finite"),
        (np.zeros((2, 2)), {"tol": 0.0}, "tol"),
        (np.zeros((2, 2)), {"tol": "small"}, "tol"),
        (np.zeros((2, 2)), {"max_iter": -1}, "max_iter"),
        (np.zeros((2, 2)), {"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_refused(A, options, words):
    with pytest.raises(sz.SpectralzError, match=words):
        sz.diagonal_sdp(A, **options)


@pytest.mark.parametrize("radius", [0.1, 0.5, 1e3])
@pytest.mark.parametrize("most", [1, 2, 40])
def test_conjugate_gradients_know_how_far_they_went_and_what_they_gained(radius, most):
    """What is updated from step to step, against the step itself: its length, and the quadratic there."""
    from spectralz.kernels.sdp.low_rank import _conjugate_gradients

    C, V, y, gradient = quadratic_on_spheres(1.0)  # Diag(y) - C is positive definite
    step, length, lowered, is_at_boundary = _conjugate_gradients(C, V, y, gradient, radius, most, 1e-12)
    quadratic = np.sum(gradient * step) + 0.5 * np.sum(step * tangent_at(V, y[:, None] * step - C @ step))
    assert lowered == pytest.approx(-quadratic, rel=1e-9)
    assert length == pytest.approx(np.sqrt(y @ np.sum(step**2, axis=1)), rel=1e-9)
    assert length <= radius * (1 + 1e-12)
    assert is_at_boundary == (length > 0.999 * radius)
    if most == 40 and not is_at_boundary:  # solved: the residual is gone
        assert tangent_at(V, y[:, None] * step - C @ step) == pytest.approx(-gradient, abs=1e-9)
