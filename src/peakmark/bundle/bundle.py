"""A campaign as one zip file: all that its report is made of, checksums, and a description as
RO-Crate.

From the file alone ``peakmark report`` builds the same PDF elsewhere, see ``unbundle``.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from peakmark import documents, resources
from peakmark.bundle import crate, staging
from peakmark.bundle.staging import Replace
from peakmark.errors import ConfigError
from peakmark.report import document, html_report, pdf_report
from peakmark.storage.results import Results

SUMS = "SHA256SUMS"
OLDEST = (1980, 1, 1, 0, 0, 0)  # a zip file knows no time before
_LICENCE = re.compile(r"^(https?://\S+|[A-Za-z0-9][A-Za-z0-9.+-]*)$")


def write(
    campaign: Path,
    target: Path | None = None,
    *,
    partial: bool = False,
    licence: str | None = None,
    replace: Replace | None = None,
) -> Path:
    """Write the bundle of a campaign; without ``target`` beside its folder, under the folder's
    name. Returns its path.

    replace  what every text passes through before it is bundled and reported, see ``staging``
    The same records give the same bytes. Errors: PeakmarkError when cells are missing and
    ``partial`` is not set, or the file cannot be written; RecordError for a damaged record or raw
    output; ConfigError for the licence.
    """
    if licence is not None and not _LICENCE.match(licence):
        raise ConfigError(
            f"--license {licence!r} is neither an SPDX identifier such as CC-BY-4.0 nor an address"
        )
    results = Results.read(campaign)
    document.must_be_complete(document.incomplete(results), partial, "bundle", campaign)
    whole = results.directory.resolve()
    target = target or whole.parent / f"{whole.name}.zip"
    if not documents.is_stream(target):
        documents.place_of(target)
    with tempfile.TemporaryDirectory(prefix="peakmark-bundle-") as name:
        folder = Path(name) / results.name
        paths = staging.copy(results, folder, replace)
        paths += _derived(folder, partial)
        files = {path: (folder / path).read_bytes() for path in sorted(paths)}
        files["requirements.txt"] = (resources.ROOT / "envs" / "requirements.txt").read_bytes()
        files = dict(sorted(files.items()))
        copied = Results.read(folder)
        files[SUMS] = checksums(files).encode()
        described = (
            json.dumps(crate.describe(copied, files, licence), indent=1, ensure_ascii=False) + "\n"
        )
        packed = _zip({**files, crate.NAME: described.encode()}, document.newest(copied))
    documents.write(target, packed, results.directory)
    return target


def _derived(folder: Path, partial: bool) -> list[str]:
    """Build tables and report beside the records; the paths of those that go into the bundle."""
    build_all(folder, partial)
    return [
        "report.pdf",
        "report.html",
        *sorted(path.relative_to(folder).as_posix() for path in (folder / "tables").rglob("*.csv")),
    ]


def build_all(campaign: Path, partial: bool) -> Path:
    """Tables, figures, PDF and HTML report of a campaign. Returns the path of the PDF."""
    html_report.build(campaign, partial)
    return pdf_report.build(campaign, partial)


def checksums(files: Mapping[str, bytes]) -> str:
    """Lines as ``sha256sum --check`` reads them."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in files.items()
    )


def _zip(files: Mapping[str, bytes], when: datetime) -> bytes:
    moment = max(OLDEST, when.timetuple()[:6])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever this runs
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return packed.getvalue()
