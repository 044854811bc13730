"""The demo and the benchmarks run, in a small size."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

import spectralz as sz

ROOT = Path(__file__).resolve().parents[1]


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_demo_gives_the_answer_first_and_ends_with_pictures(tmp_path, capsys, clock):
    clock.step = 0.05
    example("demo").main(tmp_path, side=5)
    assert (tmp_path / "demo.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "answer.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "demo.uai").is_file()
    out = capsys.readouterr().out
    answer = sz.log_z(sz.read(tmp_path / "demo.uai")).log_z
    assert f"log Z = {answer:.11f}, exact" in out.splitlines()[1]
    assert re.search(rf"auto, without exact methods +{answer:.4f} ± \S+, trusted", out)
    assert re.search(r"mf, .* at least [\d.]+ ", out)
    assert re.search(r"A glass .*\n +log Z = [\d.]+ ± [\d.]+, trusted; proven between", out)


@pytest.mark.slow
def test_the_smallest_case_of_every_benchmark_runs(tmp_path, monkeypatch, capsys):
    from benchmarks import exact, harness, logsum, start_up, uai_2014

    monkeypatch.setattr(harness, "OUT", tmp_path)
    monkeypatch.setattr(logsum, "ROUNDS", 2)
    monkeypatch.setattr(exact, "CONTESTANTS", {k: v for k, v in exact.CONTESTANTS.items() if k.startswith("spectralz")})
    assert all(found.seconds is not None for found in logsum.main())
    found = exact.main(["complete graph, n = 20, s = 1"])
    assert len(found) == 2
    assert found[0].value == pytest.approx(found[1].value, rel=1e-13)
    two = ("import numpy, scipy", "import spectralz")
    monkeypatch.setattr(start_up, "COMMANDS", {name: start_up.COMMANDS[name] for name in two})
    assert set(start_up.main(repeats=1)) == set(two)
    assert uai_2014.main(tmp_path) == []
    assert "times ours" in capsys.readouterr().out


@pytest.mark.slow
def test_the_low_rank_benchmark_runs(tmp_path):
    from benchmarks import low_rank

    found = low_rank.against_algorithm_1(n=20, strengths=(0.1,))
    assert [m.contestant for m in found] == ["quadrature", "low_rank"] * 2
    assert all(m.seconds is not None for m in [*found, *low_rank.many_factors((12,))])
    exact = sz.log_z(low_rank.model_of(20, -1.0, 0.1, seed=1), "exact").log_z
    assert found[2].value == pytest.approx(exact, rel=1e-12)
    assert low_rank.truth(low_rank.model_of(20, -1.0, 0.1, seed=1)) == pytest.approx(exact, rel=1e-13)
    low_rank.draw(tmp_path / "p.png", n=10)
    assert (tmp_path / "p.png").is_file()


def test_the_diagonal_is_drawn(tmp_path, capsys):
    example("diagonal").main(tmp_path / "new" / "diagonal.png")
    assert (tmp_path / "new" / "diagonal.png").read_bytes()[:4] == b"\x89PNG"
    assert capsys.readouterr().out.count("converged") == 3


def test_the_sdp_benchmark_runs(tmp_path, capsys):
    from benchmarks import sdp

    ours = {name: sdp.CONTESTANTS[name] for name in ("spectralz, gap 1e-6", "spectralz, gap 1e-8")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sdp, "CONTESTANTS", {name: (run, (20, 30)) for name, (run, _) in ours.items()})
        found = sdp.dense((20, 30))
    assert found[0].value == pytest.approx(found[1].value, rel=2e-6)
    assert all(m.seconds is not None for m in [*found, *sdp.sparse((4,))])
    sdp.end_to_end(n=10, repeats=1)
    assert "eigen-decomposition" in capsys.readouterr().out
    sdp.draw(tmp_path / "p.png", found)
    assert (tmp_path / "p.png").is_file()


@pytest.mark.parametrize("rival", ["scs", "clarabel", "csdp"])
def test_the_rivals_of_the_sdp_solve_the_same_problem(rival):
    from benchmarks import sdp

    if rival == "csdp" and shutil.which("csdp") is None:
        pytest.skip("csdp is not installed")
    pytest.importorskip("scs" if rival == "csdp" else rival, reason="the general solvers come with the extra [sdp]")
    A = sdp.complete(12)
    wanted = -sz.diagonal_sdp(A).lower
    assert sdp.objective(A, getattr(sdp, rival)(A)()) == pytest.approx(wanted, rel=1e-4)


def test_the_spectral_benchmark_runs(capsys):
    from benchmarks import spectral

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectral, "MODELS", 2)
        patch.setattr(spectral, "STRENGTHS", (0.1, 1.0))
        patch.setattr(spectral, "FAMILIES", {"complete, n = 20": lambda s, k: sz.generators.complete(6, s, k)})
        spectral.main()
    assert capsys.readouterr().out.count("| sdp |") == 1


def test_the_benchmark_of_the_baselines_runs(capsys):
    from benchmarks import baselines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "MODELS", 2)
        patch.setattr(baselines, "STRENGTHS", (0.1,))
        patch.setattr(baselines, "INSTANCES", {"small": lambda: sz.generators.grid(3, 0.5, seed=0)})
        patch.setattr(baselines, "CONTESTANTS", [row for row in baselines.CONTESTANTS if row[1] == "spectralz"])
        baselines.errors(n=6)
        found = baselines.races()
        baselines.large_grid(side=5)
    assert all(m.seconds is not None for m in found)
    assert "| BP-200 |" in capsys.readouterr().out


@pytest.mark.parametrize("rival", ["bp_pygms", "wmbe_pygms"])
def test_the_rivals_of_the_baselines_solve_the_same_problem(rival):
    from benchmarks import baselines

    pytest.importorskip("pygms", reason="pyGMs comes with the extra [bench]")
    model = sz.generators.grid(3, 0.3, seed=0)
    make = getattr(baselines, rival)
    value = (make(model) if rival == "bp_pygms" else make(0)(model))()
    assert value == pytest.approx(sz.log_z(model, "exact").log_z, abs=0.05)


def test_a_rivals_failure_is_a_result():
    from benchmarks.harness import measure

    def fail():
        raise ValueError("no")

    assert measure("x", "y", fail).note == "ValueError: no"
    assert measure("x", "y", lambda: lambda: __import__("time").sleep(5), limit_s=0.5).note.startswith("no answer")


def test_the_benchmark_of_the_bounds_runs(monkeypatch):
    from benchmarks import bounds

    monkeypatch.setattr(bounds, "FAMILIES", {"small": lambda s, seed: sz.generators.complete(6, s, seed)})
    assert bounds.family("small", (0.1, 1.0), 1).count("\n") == 3
    monkeypatch.setattr(bounds, "BY_WMBE", {"ibound": 3, "level": 0.9, "samples": 640})
    assert bounds.by_wmbe((1.0,), 1, side=4).count("\n") == 2
    monkeypatch.setattr(bounds, "LARGE", {"small": lambda s, seed: sz.generators.grid(6, s, seed)})
    assert bounds.beside_bounds((1.0,), budget=0.2).count("\n") == 2
    assert bounds.mini_buckets((4,), (0.1, 1.0)).count("\n") == 3
    monkeypatch.setattr(bounds, "STRUCTURED", {"grid": lambda: sz.generators.grid(5, 1.0, seed=0)})
    assert bounds.structured(("grid",), (2,)).count("\n") == 2
    assert bounds.attractive((), ()).count("\n") == 4


@pytest.mark.slow
def test_the_benchmark_of_annealing_runs(monkeypatch):
    from benchmarks import annealing

    monkeypatch.setattr(annealing, "RUNS", 50)
    assert annealing.unbiased().count("\n") == 10
    assert "%" in annealing.error_bars(models=1)
    model = sz.generators.complete(8, 0.5, seed=0)
    assert annealing.importance_sampling(model) == pytest.approx(sz.log_z(model).log_z, abs=0.05)


@pytest.mark.usefixtures("clock")
def test_the_benchmark_of_auto_goes_on_where_it_stopped(monkeypatch, tmp_path):
    from benchmarks import auto

    small = {"small": lambda s, seed: sz.generators.complete(6, s, seed)}
    monkeypatch.setattr(auto, "OUT", tmp_path)
    monkeypatch.setattr(auto, "FAMILIES", small)
    monkeypatch.setattr(auto, "STRENGTHS", (0.5,))
    row = auto.dense_row("small", 0.5, 3, budget=0.5)
    assert abs(row["error"]) < 4 * row["std_error"]
    auto.append(tmp_path / "auto-dense.csv", row)
    rows = auto.run("dense", auto.dense_row, [("small", 0.5, 3, 0.5)], 3, workers=1)
    assert [each["seed"] for each in rows] == ["3"]
    assert auto.dense_table(rows).count("\n") == 2
    large = {**row, "reference_error": 1e-3, "reference_seconds": 1.0, "reference_chosen": "states"}
    assert auto.large_table([large]).count("\n") == 2
    assert auto.uai_table([{**row, "name": "grid", "n": "6"}]).count("\n") == 2


@pytest.mark.slow
def test_two_versions_can_be_compared(tmp_path, monkeypatch, capsys):
    from benchmarks import same_results

    monkeypatch.setattr(same_results, "MODELS", 2)
    few = [
        ("grid", sz.generators.grid(side=5, strength=1.0, seed=0)),
        ("RBM", sz.RBM([[0.5, -0.2]], [0.1], [0.3, 0.0])),
    ]
    monkeypatch.setattr(same_results, "larger_models", lambda: iter(few))
    monkeypatch.setattr(same_results, "WORK", 1e6)
    same_results.record(tmp_path / "old.json")
    same_results.record(tmp_path / "new.json")
    assert same_results.compare(tmp_path / "old.json", tmp_path / "new.json") == 0
    changed = (tmp_path / "new.json").read_text().replace('"kind": "lower bound"', '"kind": "exact"')
    (tmp_path / "new.json").write_text(changed)
    assert same_results.compare(tmp_path / "old.json", tmp_path / "new.json") > 0
    assert "mf: kind" in capsys.readouterr().out
    assert same_results.differs([1.0, 2.0], [1.0, 2.0 + 1e-9])
    assert not same_results.differs([1.0, 2.0], [1.0, 2.0 + 1e-12])


def test_the_benchmark_of_machines_runs(monkeypatch):
    import numpy as np
    from benchmarks import bipartite

    monkeypatch.setattr(bipartite, "SECONDS", 0.01)
    rng = np.random.default_rng(0)
    models = {"6 x 8": sz.Ising.from_bipartite(0.3 * rng.normal(size=(6, 8)), rng.normal(size=14))}
    assert "6 x 8" in bipartite.sweeps(models)
    assert "exact" in bipartite.states(models)


def test_the_benchmark_of_compressed_elimination_runs(monkeypatch, tmp_path):
    from benchmarks import compressed, harness

    monkeypatch.setattr(harness, "OUT", tmp_path)
    monkeypatch.setattr(compressed, "CASES", {"small": lambda seed: compressed.planar(4, 1.0, seed)})
    monkeypatch.setattr(compressed, "BONDS", (2, 16))
    monkeypatch.setattr(compressed, "SIDES", (3, 4))
    monkeypatch.setattr(compressed, "PICTURE_BONDS", (2, 4))
    monkeypatch.setattr(compressed, "PICTURE_STRENGTHS", (0.5,))
    assert "| yes |" in compressed.errors(seeds=1, only="", most=1e9)
    assert compressed.times(largest=4, bond=4).count("\n") == 3
    assert all(10**2 <= model.n <= 24**2 for _, model, _ in compressed.cold_models(4))
    monkeypatch.setattr(compressed, "cold_models", lambda _: [("grid", sz.generators.grid(4, 1.0, seed=0), True)])
    assert "1 of 1 answers are trusted" in compressed.uai("", "mps", 1.0, count=1)
    compressed.draw(tmp_path / "p.png", side=4, models=2)
    compressed.draw_lattice(tmp_path / "q.png", side=5, bond=4, samples=50)
    assert (tmp_path / "p.png").is_file()
    assert (tmp_path / "q.png").is_file()


def test_the_rival_of_compressed_elimination_solves_the_same_problem():
    from benchmarks import compressed

    pytest.importorskip("quimb", reason="quimb comes with the extra [bench]")
    model = sz.generators.grid(4, 1.0, seed=0)
    found = compressed.by_quimb(compressed.network_of(model), 16, 0.0)
    assert found == pytest.approx(sz.log_z(model, "exact").log_z, abs=1e-9)


def test_the_learning_benchmark_runs(capsys):
    from benchmarks import learning

    ours = ("spectralz exact", "spectralz pseudo", "textbook gradient")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "CONTESTANTS", {name: learning.CONTESTANTS[name] for name in ours})
        exact, *others = learning.main((6,))
    assert all(abs(each.value - exact.value) < 0.05 for each in others)
    assert len(learning.recovery((6,), (500,))) == 1
    assert "held-out" in capsys.readouterr().out


def test_the_constants_of_trust_can_be_measured(capsys):
    from benchmarks import trust

    assert {rule.name for rule in trust.RULES} >= {"round trips", "pools", "ratios"}
    for rule in trust.RULES:
        assert all(isinstance(getattr(rule.module, name), float) for name in rule.constants)
    assert trust.main(["--rules", "pools", "--cases", "2", "--seed", "1"]) == 0
    assert capsys.readouterr().out.count("| pools | FEWEST_HITS |") == 3
