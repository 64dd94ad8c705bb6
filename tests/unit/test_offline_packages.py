"""The archive of make offline names the packages of every reference tool."""

from importlib.util import module_from_spec, spec_from_file_location

from peakmark.resources import ROOT
from peakmark.tools import references


def test_the_offline_archive_names_the_packages_of_every_reference_tool():
    specification = spec_from_file_location("offline", ROOT / "envs" / "offline.py")
    assert specification and specification.loader
    offline = module_from_spec(specification)
    specification.loader.exec_module(offline)
    lines = {words[0]: words[1:] for words in map(str.split, offline.packages().splitlines())}
    for name, tool in references().items():
        names = [tool.package, tool.fedora, tool.opensuse, tool.spack]
        assert lines.get(name) == ([each or "-" for each in names] if any(names) else None)
    assert lines["compiler"] == ["gcc"] * 4
