"""Numbers that are far too large, and texts that no terminal should see, end in a sentence of ours."""

from __future__ import annotations

import time

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import ModelError, OptionError, TooLargeError


@pytest.mark.parametrize("n", [10**12, 10**30])
def test_models_that_no_machine_can_hold(n):
    began = time.perf_counter()
    with pytest.raises(TooLargeError, match=rf"a model of {n} spins needs .* GiB of memory"):
        sz.Ising.from_edges(n, [(0, 1)], [1.0])
    with pytest.raises(TooLargeError, match="of memory"):
        sz.Polynomial({(0, 1, 2): 1.0}, n=n)
    assert time.perf_counter() - began < 1.0  # before anything is allocated


@pytest.mark.parametrize("read", [sz.fit, lambda X: sz.log_prob(sz.Ising([0.5, 0.0]), X)], ids=["fit", "log_prob"])
def test_cells_too_large_for_a_number(read):
    with pytest.raises(ModelError, match="a number that is too large"):
        read([[10**400, 1], [1, -1]])


def test_a_name_of_a_file_with_a_null_character():
    with pytest.raises(FileNotFoundError, match="no file can have a null character"):
        sz.read("\x00")


@pytest.mark.parametrize("betas", [[[1.0, 2.0]], np.ones((2, 2))])
def test_temperatures_in_a_table_are_refused(betas):
    with pytest.raises(OptionError, match="betas has shape"):
        sz.thermodynamics(sz.generators.grid(side=3, strength=1.0, seed=0), betas)


def test_control_characters_in_names_are_shown_escaped():
    model = sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0], names=["a\nb", "c\x1b[31m"])
    marginals = sz.marginals(model)
    cubic = sz.Polynomial({("a\nb", "c\x1b[31m", "d\u202e"): 1.0})
    texts = [repr(model), str(marginals), marginals._repr_html_(), model._repr_html_(), repr(cubic), model.label(1)]
    for text in texts:
        assert all(c.isprintable() or c == "\n" for c in text)
        assert "\x1b" not in text
    assert r"a\nb, c\x1b[31m" in repr(model)
    with pytest.raises(ModelError) as refused:
        model.index("z")
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("n", [60, 63, 100])
def test_a_refused_plan_says_what_it_would_take_at_least(n):
    plan = sz.Exact().plan(sz.generators.complete(n=n, strength=1.0, seed=0))
    assert plan.refusal is not None
    assert (plan.width, plan.terms, plan.memory) == (n - 1, 2**n, 8 * 2 ** (n - 1))


@pytest.mark.parametrize(
    "model",
    [
        sz.generators.complete(n=27, strength=1.0, seed=0),  # whose states are listed
        sz.generators.grid(side=8, strength=1.0, seed=0),
        sz.generators.random_regular(n=60, degree=3, strength=1.0, seed=0),
    ],
    ids=["complete", "grid", "regular"],
)
def test_a_description_promises_what_is_planned(model):
    about, plan = sz.describe(model), sz.Exact().plan(model)
    assert plan.refusal is None
    assert (about.exact_terms, about.exact_memory) == (plan.terms, plan.memory)
    assert about.treewidth_lower <= about.treewidth_upper
