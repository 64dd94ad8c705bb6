"""The command blocks of the documentation.

Blocks marked ``sh`` are run by tests, those marked ``bash`` need root, a cluster or a file that a
reader has, and are only parsed. A block with a title is the file of that name.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from peakmark.resources import ROOT

DOCS = ROOT / "docs"
FOLDERS = ("tutorial", "howto")
CLUSTER = ("first-cluster-run", "accept-a-cluster", "find-a-slow-node", "watch-a-cluster")
"""Pages whose commands need Slurm."""
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code: language, title (empty without one), and text."""

    language: str
    title: str
    text: str


def pages(*folders: str) -> list[Path]:
    """The pages in folders of the documentation."""
    return sorted(page for folder in folders for page in (DOCS / folder).glob("*.md"))


def blocks(page: Path) -> list[Block]:
    """The blocks of code of a page."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def script(page: Path, folder: Path) -> str:
    """The page's commands for bash, shortened; files with a title are written into a folder.

    A campaign that a page measures is made shorter; nothing else of a command is changed.
    """
    commands = []
    for block in blocks(page):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            commands += block.text.splitlines()
    return "\n".join(["set -e", *map(_short, commands)])


def _short(command: str) -> str:
    if not command.startswith("peakmark run "):
        return command
    settings = "scale=0.1"
    if " quick" in command:
        settings += " repetitions=1 reference_repetitions=1"
    if " file-io-lab" in command:  # IOZone takes 20 s a cell, however small
        settings = "scale=0.0001 repetitions=1 'tools={iozone: false}'"
    command, _, page_settings = command.partition(" -- --config ")
    return f"{command} -- --config {settings} {page_settings.replace('scale=0.01', '')}".rstrip()


if __name__ == "__main__":  # the pages whose commands need no cluster, each as a folder of FOLDER
    for page in pages(*FOLDERS):
        if page.stem not in CLUSTER:
            folder = Path(sys.argv[1], page.stem)
            folder.mkdir(parents=True)
            (folder / "commands").write_text(script(page, folder), encoding="utf-8")
