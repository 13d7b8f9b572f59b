"""Set-up installs what the files name and resolves nothing: they have to agree, and be exact."""

import re
import tomllib
from collections import defaultdict

from testing.servers import ROOT

FILES = [*ROOT.glob("requirements*.txt"), ROOT / "lambdas" / "requirements.txt"]


def pins() -> dict[str, set[str]]:
    """The versions of each package, of all files and of pyproject.toml."""
    lines = [line for path in FILES for line in path.read_text().splitlines()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines += [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    found = defaultdict(set)
    for line in lines:
        if not line.startswith(("#", "-r ")):
            name, _, version = line.partition("==")
            found[name.lower()].add(version)
    return found


def test_every_package_has_one_exact_version():
    assert len(FILES) == 5
    for name, versions in pins().items():
        (version,) = versions
        assert re.fullmatch(r"\d[\w.]*", version), name
