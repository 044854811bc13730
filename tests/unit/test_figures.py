"""The figures: their settings are the paper's, they draw whatever rows there are, and claims can hold and fail."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from spectralz import generators, io
from spectralz.errors import OptionError
from spectralz.methods import PAPER_SETTINGS
from spectralz.paper import FIGURES, drawing, fig2b_sdp_time, fig2c_rank_one, fig3abcde_strengths, fig3f_uai
from spectralz.sweeps import Contestant, Row, Sweep

NINE = (0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
# generator, parameters, axis, values, models a value
FULL = {
    "fig2a": ("complete", {"n": 20}, "strength", NINE, 100),
    "fig2b": ("complete", {"strength": 1.0}, "n", (100, 200, 500, 1000, 2000, 5000), 10),
    "fig2c": ("rank-one", {"n": 20}, "strength", NINE, 100),
    "fig3a": ("erdos-renyi", {"n": 20, "p": 0.5}, "strength", NINE, 100),
    "fig3b": ("erdos-renyi", {"n": 20, "p": 0.7}, "strength", NINE, 100),
    "fig3c": ("complete", {"n": 20}, "strength", NINE, 100),
    "fig3d": ("bipartite", {"n": 20}, "strength", NINE, 100),
    "fig3e": ("grid", {"side": 15}, "strength", NINE, 100),
    "fig4": ("complete", {"strength": 1.0}, "n", (100, 200, 300, 400, 500), 100),
}
BASELINES = ["BP-200", "MF-1000", "MBE-10", "WMBE-10"]
OF_THE_PAPER = {
    "fig2a": ["SDP", "D = 0", "Largest eigenvalue", "Diagonally dominant"],
    "fig2b": ["SDP"],
    "fig2c": ["Algorithm 1", *BASELINES],
    "fig4": ["Algorithm 2", "BP-200", "MF-1000", "MBE-10"],
}
LARGEST_MADE = 300
DRAWN_DIFFERENTLY = ("fig2b", "fig3c", "fig3f", "fig4")


def row(label: str, x: float, error: float | None = 0.0, **changes) -> Row:
    truth = None if error is None else 10.0
    made = Row(
        instance="made-up",
        x=x,
        repeat=0,
        seed=0,
        n=20,
        edges=190,
        label=label,
        method="made-up",
        options="{}",
        log_z=10.0 + (error or 0.0),
        truth=truth,
        error=error,
        kind="estimate",
        status="made up",
        converged=True,
        lower=None,
        upper=None,
        std_error=None,
        seconds=0.01,
        peak_mib=100.0,
        failure="",
        versions="",
    )
    return replace(made, **changes)


def failed(label: str, x: float) -> Row:
    return row(label, x, None, log_z=None, seconds=None, failure="too large")


def some_rows(name: str, error=lambda label, x: 0.5 + len(label) * x) -> list[Row]:
    sweep = FIGURES[name].quick
    return [
        row(one.label, x, error(one.label, x) + 0.1 * repeat, repeat=repeat, seconds=1e-7 * (1 + x) ** 2)
        for x in sweep.values
        for repeat in range(3)
        for one in sweep.contestants
    ]


def drawn(name: str, rows: list[Row]):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure()
    FigureCanvasAgg(canvas)
    axes = canvas.add_subplot()
    FIGURES[name].draw(rows, axes)
    canvas.canvas.draw()
    return axes


def legend(axes) -> list[str]:
    found = axes.get_legend()
    return [text.get_text() for text in found.get_texts()] if found else []


def test_the_figures_are_those_of_the_paper_in_its_order():
    assert list(FIGURES) == ["fig2a", "fig2b", "fig2c", "fig3a", "fig3b", "fig3c", "fig3d", "fig3e", "fig3f", "fig4"]
    assert all(name == figure.name == figure.full.name == figure.quick.name for name, figure in FIGURES.items())
    assert all(figure.claims and figure.notes for figure in FIGURES.values())


@pytest.mark.parametrize("name", FULL)
def test_the_full_setting_is_the_papers(name):
    sweep = FIGURES[name].full
    generator, parameters, axis, values, repeats = FULL[name]
    assert (sweep.generator, sweep.parameters, sweep.axis, sweep.repeats) == (generator, parameters, axis, repeats)
    assert sweep.values == values
    tasks = list(sweep.tasks())
    assert len(tasks) == len(values) * repeats
    assert len({task.instance for task in tasks}) == len(tasks)
    assert all(task.parameters == {**parameters, axis: task.x, "seed": task.seed} for task in tasks)
    assert sweep.truth == (axis == "strength")


@pytest.mark.parametrize("name", FIGURES)
def test_the_methods_are_the_papers_and_ours_beside_them(name):
    figure = FIGURES[name]
    assert figure.full.contestants == figure.quick.contestants
    found = [one for one in figure.full.contestants if not one.is_ours]
    assert [one.label for one in found] == OF_THE_PAPER.get(name, ["Algorithm 2", *BASELINES])
    for one in found:
        if one.label in BASELINES:
            assert one.build() == PAPER_SETTINGS[one.label]
        if one.label in ("Algorithm 2", "SDP") and one.method != "sdp":
            assert one.build() == PAPER_SETTINGS["Ours"]
    if name != "fig2b":
        assert any(one.is_ours for one in figure.full.contestants)


@pytest.mark.parametrize("name", FIGURES)
def test_quick_is_a_small_part_of_the_same(name):
    full, quick = FIGURES[name].full, FIGURES[name].quick
    assert replace(quick, values=full.values, repeats=full.repeats) == full
    assert min(quick.values) >= min(full.values)
    assert max(quick.values) <= max(full.values)
    tasks = list(quick.tasks())
    assert len(tasks) == len(quick.values) * quick.repeats <= len(list(full.tasks())) / 2
    for task in tasks:
        if task.parameters.get("n", 0) <= LARGEST_MADE:
            n = task.parameters.get("n", task.parameters.get("side", 0) ** 2)
            assert task.model().n == n


def test_the_generated_uai_grids_follow_the_recipe():
    models = [task.model() for task in FIGURES["fig3f"].quick.tasks()]
    assert [model.n for model in models] == [100] * 4 + [400] * 4
    assert [model.edge_count for model in models] == [200, 180, 200, 200, 760, 760, 760, 760]
    largest = [float(np.abs(model.edges()[1]).max()) for model in models]
    wanted = [5, 10, 10, 15, 2, 5, 10, 15]
    assert all(0.9 * f < found < f for f, found in zip(wanted, largest, strict=True))
    # As in the files, 11, 13 and 14 are one draw at three scales.
    np.testing.assert_allclose(models[2].edges()[1], 2.0 * models[0].edges()[1], rtol=1e-15)
    assert "generated" in FIGURES["fig3f"].title
    assert len(list(FIGURES["fig3f"].full.tasks())) == 80


def test_the_uai_files_of_a_folder_are_found(tmp_path):
    folder = tmp_path / "below"
    folder.mkdir()
    for place, name in enumerate(fig3f_uai.FILES):
        io.write(generators.grid(side=2, strength=1.0, seed=place), folder / name)
    for given in (folder, str(tmp_path)):
        figure = fig3f_uai.with_files(given)
        assert figure.full == figure.quick
        assert [task.instance for task in figure.full.tasks()] == list(fig3f_uai.FILES)
        assert [task.x for task in figure.full.tasks()] == list(range(1, 9))
        assert all(task.model().n == 4 for task in figure.full.tasks())
        assert "generated" not in figure.title + figure.notes.lower()
        assert figure.claims == FIGURES["fig3f"].claims
    (folder / fig3f_uai.FILES[3]).unlink()
    with pytest.raises(OptionError, match=r"lacks Grids_14\.uai"):
        fig3f_uai.with_files(tmp_path)


def test_instances_have_parameters_of_their_own():
    only = (Contestant(label="BP", method="bp"),)
    sweep = Sweep(
        name="mine",
        contestants=only,
        generator="grid",
        parameters={"side": 3},
        instances=({"strength": 1.0}, {"strength": 2.0, "periodic": True}),
        repeats=2,
        seed=5,
    )
    tasks = list(sweep.tasks())
    assert [(task.x, task.seed) for task in tasks] == [(1.0, 5), (1.0, 6), (2.0, 5), (2.0, 6)]
    assert tasks[3].parameters == {"side": 3, "strength": 2.0, "periodic": True, "seed": 6}
    assert len({task.instance for task in tasks}) == 4
    assert Sweep.from_dict(sweep.to_dict()) == sweep
    for wrong in ({"width": 3}, {"side": 3, "strength": 1.0}, {}):
        with pytest.raises(OptionError):
            replace(sweep, instances=(wrong, *sweep.instances[1:]))
    with pytest.raises(OptionError, match="instances"):
        replace(sweep, values=(1.0,))


@pytest.mark.parametrize("name", FIGURES)
def test_every_method_is_drawn_with_its_time(name):
    axes = drawn(name, some_rows(name))
    labels = legend(axes)
    for one in FIGURES[name].quick.contestants:
        assert any(label.startswith((f"{one.label} (", f"{one.label}:")) for label in labels), one.label
    assert axes.get_yscale() == "log"
    if name in ("fig2b", "fig4"):
        assert any("(n^2.0)" in label for label in labels)
    elif name != "fig3f":
        assert any("ms)" in label for label in labels)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(
    "kind", ["nothing", "one row", "only failures", "some failures", "no truth", "exact", "strange"]
)
def test_whatever_rows_there_are_can_be_drawn_and_judged(name, kind):
    rows = some_rows(name)
    rows = {
        "nothing": [],
        "one row": rows[:1],
        "only failures": [failed(one.label, one.x) for one in rows],
        "some failures": rows + [failed(one.label, one.x) for one in rows[:2]],
        "no truth": [replace(one, truth=None, error=None) for one in rows],
        "exact": [replace(one, error=0.0) for one in rows],
        "strange": [replace(one, label="somebody else's") for one in rows],
    }[kind]
    if name in DRAWN_DIFFERENTLY:
        axes = drawn(name, rows)
        if kind in ("only failures", "some failures"):
            assert any("failed" in label for label in legend(axes))
        if kind in ("nothing", "only failures", "strange"):
            assert any("nothing to draw" in text.get_text() for text in axes.texts)
    for claim in FIGURES[name].claims:
        words, holds = claim.check(rows)
        assert words.endswith(".")
        assert "nan" not in words.replace("dominant", "")
        if kind in ("nothing", "one row", "only failures", "strange"):
            assert not holds
            assert words.startswith("The rows hold no")


def at_floor(axes):
    """The words on the axis at its floor, or none."""
    axes.figure.canvas.draw()
    return [label.get_text() for label in axes.get_yticklabels() if label.get_text().startswith("≤")]


def test_errors_below_the_floor_lie_on_it_and_the_axis_says_so():
    above = drawn("fig3c", [row("BP-200", 1.0, 0.5), row("BP-200", 2.0, 5.0)])
    assert at_floor(above) == []
    across = drawn("fig3c", [row("BP-200", 1.0, 1e-9), row("BP-200", 2.0, 5.0)])
    assert at_floor(across) == ["≤ 0.001"]
    assert list(across.containers[0][0].get_ydata()) == [1e-3, 5.0]
    rings = [line for line in across.lines if line.get_linestyle() == "None" and line.get_marker() != "x"]
    assert [(list(line.get_xdata()), list(line.get_ydata()), line.get_markerfacecolor()) for line in rings] == [
        ([1.0], [1e-3], "none")
    ]


@pytest.mark.parametrize("name", ["fig2a", "fig2c", "fig3c", "fig3e", "fig3f"])
def test_a_method_without_any_error_is_drawn_and_named(name):
    labels = [one.label for one in FIGURES[name].quick.contestants]
    exact = labels[-1]
    floor = {"fig2a": 1e-2, "fig2c": 1e-4, "fig3f": 1e-2}.get(name, 1e-3)
    rows = [replace(one, error=0.0) if one.label == exact else one for one in some_rows(name)]
    axes = drawn(name, rows)
    lines = {found.get_label(): found[0] for found in axes.containers}
    own = next(line for label, line in lines.items() if label.startswith(f"{exact}: below {floor:g} ("))
    assert len(own.get_ydata()) == len({one.x for one in rows})
    assert set(own.get_ydata()) == {floor}
    assert axes.get_ylim()[0] < floor
    assert at_floor(axes) == [f"≤ {floor:g}"]
    assert any(label.startswith(f"{exact}: below") for label in legend(axes))
    assert len(lines) == len(labels)


def test_all_methods_without_any_error_are_drawn_in_rings_of_their_own():
    rows = [replace(one, error=0.0) for one in some_rows("fig3c")]
    axes = drawn("fig3c", rows)
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] < 1e-3 < axes.get_ylim()[1]
    rings = [line.get_markersize() for line in axes.lines if line.get_markerfacecolor() == "none"]
    count = len(FIGURES["fig3c"].quick.contestants)
    assert len(set(rings[:5])) == min(count, 5)


def test_bars_are_standard_errors():
    rows = [row("BP-200", 1.0, error) for error in (-1.0, 2.0, 3.0)]
    bars = drawn("fig3c", rows).containers[0][2][0].get_segments()[0]
    half = float(np.std([1.0, 2.0, 3.0], ddof=1)) / math.sqrt(3.0)
    np.testing.assert_allclose(bars[:, 1], [2.0 - half, 2.0 + half])


def test_ours_are_dashed_in_the_colour_of_what_they_improve():
    looks = drawing.styles(fig3abcde_strengths.CONTESTANTS)
    for ours, theirs in {
        "Algorithm 2, quadrature": "Algorithm 2",
        "BP, damped": "BP-200",
        "MF, 20 starts": "MF-1000",
        "WMBE-10, 30 rounds": "WMBE-10",
    }.items():
        assert looks[ours].color == looks[theirs].color
        assert (looks[ours].line()["linestyle"], looks[theirs].line()["linestyle"]) == ("--", "-")
    assert len({look.color for look in looks.values()}) == 6
    diagonals = drawing.styles(FIGURES["fig2a"].full.contestants)
    assert len({look.color for look in diagonals.values()}) == 4
    assert drawing.styles(FIGURES["fig2c"].full.contestants)["Quadrature"].color == looks["Algorithm 2"].color


@pytest.mark.slow
def test_a_picture_has_a_known_format():
    for file_format, opening in {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}.items():
        assert drawing.picture(FIGURES["fig3c"], some_rows("fig3c"), file_format).startswith(opening)
    with pytest.raises(OptionError, match="'gif'"):
        drawing.picture(FIGURES["fig3c"], [], "gif")


@pytest.mark.parametrize("power", [0.5, 2.0, 2.7])
def test_the_fit_recovers_a_planted_exponent(power):
    sizes = [100.0, 200.0, 500.0, 1000.0]
    assert drawing.fitted_exponent(sizes, [3e-6 * n**power for n in sizes]) == pytest.approx(power, abs=1e-12)
    noisy = [3e-6 * n**power * factor for n, factor in zip(sizes, (1.1, 0.95, 1.0, 1.05), strict=True)]
    assert drawing.fitted_exponent(sizes, noisy) == pytest.approx(power, abs=0.1)


def test_no_exponent_without_two_sizes():
    assert drawing.fitted_exponent([], []) is None
    assert drawing.fitted_exponent([100.0, 100.0], [1.0, 2.0]) is None
    assert drawing.fitted_exponent([100.0, 200.0], [1.0, math.nan]) is None
    assert drawing.fitted_exponent([100.0, 200.0, 400.0], [1.0, math.nan, 4.0]) == pytest.approx(1.0)


def test_the_polynomials_are_fitted_up_to_2000_only():
    sizes = [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]
    seconds = [1e-3 + 2e-7 * n**2 for n in sizes[:-1]] + [1e9]
    for degree in (2, 3):
        fit = fig2b_sdp_time.polynomial(sizes, seconds, degree)
        assert fit is not None
        assert fit(1500.0) == pytest.approx(1e-3 + 2e-7 * 1500.0**2, rel=1e-6)
    assert fig2b_sdp_time.polynomial(sizes[:2], seconds[:2], 2) is None


def errors_of(sizes: dict[str, float]) -> list[Row]:
    """Return rows of mean |error| in proportion to s, of both signs."""
    return [
        row(label, s, sign * size * s) for label, size in sizes.items() for s in (1.0, 2.0, 4.0) for sign in (-1, 1)
    ]


GOOD = {"Algorithm 2": 1.0, "BP-200": 3.0, "MF-1000": 2.0, "MBE-10": 5.0, "WMBE-10": 4.0}


@pytest.mark.parametrize("name", ["fig3a", "fig3b", "fig3c", "fig3d", "fig3e"])
def test_the_claim_of_strong_coupling(name):
    check = FIGURES[name].claims[0].check
    words, holds = check(errors_of(GOOD))
    assert holds
    assert "2 ± 0 against 4 ± 0 (MF-1000) at s = 2" in words
    words, holds = check(errors_of({**GOOD, "MBE-10": 0.5}))
    assert not holds
    assert "0 of 2" in words
    # Ours may be as good as it likes: it is not of the paper.
    assert check(errors_of({**GOOD, "MF, 20 starts": 0.0}))[1]
    # One lost strength is enough; couplings that are not strong do not count.
    assert not check([*errors_of(GOOD), row("BP-200", 3.0, 1.0), row("Algorithm 2", 3.0, 2.0)])[1]
    assert check([*errors_of(GOOD), row("BP-200", 0.5, 1.0), row("Algorithm 2", 0.5, 2.0)])[1]


def test_the_claims_of_dense_graphs():
    _, better_than_mf, least_spread = (claim.check for claim in FIGURES["fig3c"].claims)
    assert better_than_mf(errors_of({**GOOD, "BP-200": 0.1}))[1]
    assert not better_than_mf(errors_of({**GOOD, "MF-1000": 0.1}))[1]

    def spread(sizes: dict[str, float]) -> list[Row]:
        return [row(label, 4.0, 10.0 + sign * size) for label, size in sizes.items() for sign in (-1, 1)]

    words, holds = least_spread(spread({"Algorithm 2": 1.0, "BP-200": 3.0, "MF-1000": 2.0}))
    assert holds
    assert "Algorithm 2 1.4, BP-200 4.2, MF-1000 2.8" in words
    assert not least_spread(spread({"Algorithm 2": 2.5, "BP-200": 3.0, "MF-1000": 2.0}))[1]
    assert not least_spread(spread({"Algorithm 2": 1.0, "BP-200": 3.0}))[1]


@pytest.mark.parametrize("name", ["fig3e", "fig3f"])
def test_the_claim_that_mean_field_is_worst(name):
    check = FIGURES[name].claims[1].check
    assert check(errors_of({**GOOD, "MF-1000": 9.0, "MF, 20 starts": 20.0}))[1]
    assert not check(errors_of(GOOD))[1]


def test_the_claim_of_the_diagonals():
    check = FIGURES["fig2a"].claims[0].check
    good = {"SDP": 1.0, "D = 0": 5.0, "Largest eigenvalue": 2.0, "Diagonally dominant": 3.0}
    words, holds = check(errors_of(good))
    assert holds
    assert "3 of 3" in words
    assert not check(errors_of({**good, "Largest eigenvalue": 0.9}))[1]
    assert "all four" in check(errors_of({"SDP": 1.0, "D = 0": 5.0}))[0]


def test_the_claim_of_rank_one():
    check = FIGURES["fig2c"].claims[0].check
    good = {**dict.fromkeys(BASELINES, 2.0), fig2c_rank_one.ALGORITHM_1: 0.01}
    words, holds = check(errors_of(good))
    assert holds
    assert "Algorithm 1 0.04 (0.4% of log Z)" in words
    assert not check(errors_of({**good, fig2c_rank_one.ALGORITHM_1: 0.1}))[1]
    assert not check(errors_of({**good, "MF-1000": 0.001}))[1]


def test_the_claim_of_the_uai_grids():
    check = FIGURES["fig3f"].claims[0].check
    assert check(errors_of(GOOD))[1]
    assert not check([*errors_of(GOOD), row("Algorithm 2", 8.0, 50.0)])[1]


def timed(powers: dict[str, float], sizes=(100.0, 200.0, 400.0)) -> list[Row]:
    return [row(label, n, None, seconds=1e-6 * n**power) for label, power in powers.items() for n in sizes]


@pytest.mark.parametrize(("power", "holds"), [(1.9, False), (2.2, True), (2.9, True), (3.2, False)])
def test_the_claim_of_the_sdps_time(power, holds):
    words, found = FIGURES["fig2b"].claims[0].check(timed({"SDP": power}))
    assert found == holds
    assert f"n^{power:.2f}" in words


def test_the_claims_of_running_time():
    like_bp, mbe_does_not, mf_is_fastest = (claim.check for claim in FIGURES["fig4"].claims)
    good = timed({"Algorithm 2": 2.2, "BP-200": 2.0, "MF-1000": 1.0, "MBE-10": 3.0})
    assert "a ratio of 1.10" in like_bp(good)[0]
    assert all(check(good)[1] for check in (like_bp, mbe_does_not, mf_is_fastest))
    bad = timed({"Algorithm 2": 3.0, "BP-200": 2.0, "MF-1000": 2.5, "MBE-10": 2.1})
    assert not any(check(bad)[1] for check in (like_bp, mbe_does_not, mf_is_fastest))
    alone = partial(timed, {"Algorithm 2": 2.2})
    assert not any(check(alone())[1] for check in (like_bp, mbe_does_not, mf_is_fastest))


@pytest.mark.slow
def test_importing_the_figures_is_light():
    code = "import sys, spectralz.paper; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numba", "llvmlite", "matplotlib", "scipy.optimize", "dask"}
