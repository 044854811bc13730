"""Print the oldest releases that pyproject.toml allows, as constraints for pip.

    python tools/oldest.py [extra ...]

For each ``name>=version`` of the dependencies and of the extras named, one line ``name==version``. The lower bounds
are written down once, in pyproject.toml; `make test-oldest` installs what this prints and runs the tests with it.
Only the standard library is needed, since it runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*(\[(?P<extras>[^\]]*)\])?\s*(>=\s*(?P<version>[0-9][^\s,;]*))?")


def oldest(project: dict[str, Any], extras: Sequence[str] = ()) -> dict[str, str]:
    """Return the lowest version of each package that the project and these of its extras ask for.

    Raises
    ------
    ValueError
        If a requirement has no lower bound, an extra is unknown, or one package has two different bounds.
    """
    found: dict[str, str] = {}
    for name, version in _bounds(project, project["dependencies"], tuple(extras), frozenset()):
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lower bounds, {found[name]} and {version}: write one")
    return found


def _bounds(
    project: dict[str, Any], requirements: Sequence[str], extras: Sequence[str], seen: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Go through requirements, then those of the extras; an extra may name others, as in ``spectralz[test]``."""
    for requirement in requirements:
        match = REQUIREMENT.match(requirement.strip())
        if match is None:
            raise ValueError(f"cannot read the requirement {requirement!r}")
        if match["name"] == project["name"]:
            inner = [extra.strip() for extra in (match["extras"] or "").split(",") if extra.strip()]
            yield from _bounds(project, (), inner, seen)
        elif match["version"] is None:
            raise ValueError(f"{requirement!r} has no lower bound: write {match['name']}>=version")
        else:
            yield match["name"].lower(), match["version"]
    known = project.get("optional-dependencies", {})
    for extra in extras:
        if extra not in known:
            raise ValueError(f"no extra is called {extra!r}; known: {', '.join(sorted(known))}")
        if extra not in seen:
            yield from _bounds(project, known[extra], (), seen | {extra})


def main(extras: Sequence[str]) -> None:
    """Print one constraint per line."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    try:
        found = oldest(project, extras)
    except ValueError as error:
        sys.exit(f"{PYPROJECT.name}: {error}")
    for name, version in found.items():
        print(f"{name}=={version}")


if __name__ == "__main__":
    main(sys.argv[1:])
