"""A host that is a folder: files as the kernel shows them, and tools that print real outputs."""

from tests.unit import campaign_data

from peakmark.machine.host import Host

DATA = campaign_data.DATA


def listed(text):
    """Files from lines of a path, a blank, and the file's text."""
    lines = (line.strip().partition(" ") for line in text.splitlines() if line.strip())
    return {path: content for path, _, content in lines}


def files_of(name):
    """Files of a machine that is listed in ``tests/unit/data/hosts``."""
    return listed((DATA / "hosts" / f"{name}.txt").read_text())


def host(root, files="", tools=None):
    """A machine of files below ``root`` (``->target`` makes a link) and of what its tools print."""
    for name, text in (listed(files) if isinstance(files, str) else files).items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text[2:])
        else:
            path.write_text(text)

    def run(argv):
        outputs = dict(tools or {}).items()
        return next((text for start, text in outputs if " ".join(argv).startswith(start)), None)

    return Host(root, run)
