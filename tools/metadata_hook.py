"""What pyproject.toml cannot say by itself: the README as a package index shows it, and the project's addresses.

The build reads this file (`[tool.hatch.metadata.hooks.custom]`). One setting, ``repository``, is the address of the
project. Where it is set, relative links and pictures of the README lead to the files of this version there, and the
project's addresses are part of the metadata. Where it is empty, there are no addresses; links that would lead nowhere
outside the repository become plain words, and pictures that nobody could load are left out.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

CODE = r"(?P<code>^ {0,3}```.*?^ {0,3}```[^\n]*$|`[^`\n]+`)"
TARGET = r"\(\s*(?P<target>[^)\s]+)(?P<title>\s+\"[^\"]*\")?\s*\)"
# Code comes first, so that what looks like a link inside it is left alone. A link may have a picture for its words.
TOKEN = re.compile(
    CODE + r"|(?P<image>!)?\[(?P<words>(?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]" + TARGET,
    flags=re.MULTILINE | re.DOTALL,
)
GAP = re.compile(CODE + r"|\n{3,}", flags=re.MULTILINE | re.DOTALL)
ABSOLUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#")


def urls(repository: str, version: str) -> dict[str, str]:
    """Return the addresses of the project, as the metadata names them; none if there is no repository."""
    if not repository:
        return {}
    return {
        "Homepage": repository,
        "Documentation": f"{repository}/tree/v{version}/docs",
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Source": repository,
    }


def readme(text: str, repository: str, version: str) -> str:
    """Return the README for readers who do not have the files beside it."""

    def rewrite(token: re.Match[str]) -> str:
        if token["code"]:
            return token[0]
        words = token["words"] if token["image"] else TOKEN.sub(rewrite, token["words"])
        target, title = token["target"], token["title"] or ""
        if not ABSOLUTE.match(target):
            if not repository:
                return "" if token["image"] else words
            view = "raw" if token["image"] else "blob"
            target = f"{repository}/{view}/v{version}/{posixpath.normpath(target).lstrip('/')}"
        if not words and not token["image"]:  # it was a picture that is left out
            return ""
        return f"{token['image'] or ''}[{words}]({target}{title})"

    # Where a picture was left out, one empty line is enough.
    return GAP.sub(lambda gap: gap["code"] or "\n\n", TOKEN.sub(rewrite, text))


class MetadataHook(MetadataHookInterface):
    """Fills in the fields that pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme`` and, where the project has an address, ``urls``."""
        repository = self.config.get("repository", "").rstrip("/")
        if repository and not repository.startswith("https://"):
            raise ValueError(f"repository must be an address that begins with https://, or empty; got {repository!r}")
        version = metadata["version"]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text, repository, version)}
        metadata["urls"] = urls(repository, version)
