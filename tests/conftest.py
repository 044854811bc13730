"""Fixtures and settings of all tests; what test files share besides stands in ``helpers.py``."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Processes that run tests side by side share the cores: with two threads each, they would mostly wait for one another.
# numpy reads this when it is first imported, which must not be before.
if "PYTEST_XDIST_WORKER" in os.environ:
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A shell that starts the tests in the background lets them ignore interrupts, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest.register_assert_rewrite("tests.helpers")

# Compiled code makes the first example slow and the others fast; a deadline would only measure that.
settings.register_profile(
    "all", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("all"), max_examples=40)


def pytest_configure(config):
    """Draw fewer examples where slow tests are left out."""
    settings.load_profile("quick" if config.getoption("markexpr") == "not slow" else "all")


UAI_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "uai"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command line in an empty folder and return exit code, stdout and stderr."""
    from spectralz.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture
def clock(monkeypatch):
    """Plan budgets by a machine that is the same everywhere, and slow enough that nothing waits for it.

    A look at the clock takes two milliseconds, a spin of a sweep a tenth of a microsecond, and a table entry of a block
    of mean field two of them. Methods time themselves by it too, since bounders plan by what the method before them
    took.
    """
    from spectralz._support.clock import using_clock
    from tests.helpers import FakeClock, count_blocks, count_sweeps

    fake = FakeClock(step=2e-3)
    count_sweeps(monkeypatch, fake, 1e-7)
    count_blocks(monkeypatch, fake, 2e-7)
    monkeypatch.setattr("spectralz._support.clock.seconds", fake)
    with using_clock(fake):
        yield fake


@pytest.fixture
def uai_folder() -> Path:
    """The models of the UAI 2014 competition, which are kept beside the project and not in it."""
    if not UAI_FOLDER.is_dir():
        pytest.skip("the UAI 2014 models are not at ../shared/data/uai")
    return UAI_FOLDER
