"""Write the description of the package: README.md, with links into the repository.

A package index shows the description alone, so that links to other files of the checkout lead nowhere.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)]+)\)")
"""A link or, with an exclamation mark, an image, whose target is a file of the checkout."""


class DescriptionHook(MetadataHookInterface):
    """Step of hatchling that completes the metadata, see [tool.hatch.metadata.hooks] in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        if repository:
            text = with_absolute_links(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_absolute_links(text: str, repository: str) -> str:
    """Return Markdown whose links to files lead to the newest files of a repository."""

    def absolute(link: re.Match[str]) -> str:
        """Return a link with the address of its file; an image needs the address of its content."""
        mark, words, path = link.groups()
        page = "raw" if mark else "blob"
        return f"{mark}[{words}]({repository}/{page}/HEAD/{path})"

    return LINK.sub(absolute, text)
