"""What several test files share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Compiled code makes the first example slow and the others fast; a deadline would only measure that.
settings.register_profile(
    "spectralz", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("spectralz")

UAI_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "uai"


@pytest.fixture
def uai_folder() -> Path:
    """The models of the UAI 2014 competition, which are kept beside the project and not in it."""
    if not UAI_FOLDER.is_dir():
        pytest.skip("the UAI 2014 models are not at ../shared/data/uai")
    return UAI_FOLDER
