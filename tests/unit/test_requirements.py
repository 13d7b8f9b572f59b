"""Set-up installs what the files name and resolves nothing: they have to agree, and be exact.

The package itself asks for ranges, which hold what the files name, and begin where
requirements-lowest.txt is.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

from testing.servers import ROOT

LOWEST = ROOT / "requirements-lowest.txt"
FILES = [
    *(path for path in ROOT.glob("requirements*.txt") if path != LOWEST),
    ROOT / "lambdas" / "handlers" / "requirements.txt",
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RANGES = [
    Requirement(line)
    for line in (
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["cdk"],
        *PROJECT["build-system"]["requires"],
    )
]


def pins(files: Iterable[Path]) -> dict[str, set[str]]:
    """The versions of each package, of all files."""
    found = defaultdict(set)
    for line in (line for path in files for line in path.read_text().splitlines()):
        if not line.startswith(("#", "-r ")):
            name, _, version = line.partition("==")
            found[name.lower()].add(version)
    return found


def test_every_package_has_one_exact_version():
    assert len(FILES) == 5
    for name, versions in {**pins(FILES), **pins([LOWEST])}.items():
        (version,) = versions
        assert re.fullmatch(r"\d[\w.]*", version), name


def test_what_is_tested_lies_within_the_ranges_of_the_package():
    tested = pins(FILES)
    for needed in RANGES:
        (version,) = tested[needed.name]
        assert version in needed.specifier


def test_the_lowest_versions_that_are_tried_are_the_lower_ends_of_the_ranges():
    tried = pins([LOWEST])
    for needed in (one for one in RANGES if one.name != "hatchling"):
        (lower,) = (one.version for one in needed.specifier if one.operator == ">=")
        (version,) = tried[needed.name]
        assert version in Requirement(f"x=={lower}").specifier, needed.name


def test_the_layer_of_the_functions_has_nothing_of_the_screen():
    """Which the contract on click and rich in pyproject.toml allows."""
    assert not {"click", "rich"} & set(pins([ROOT / "lambdas" / "handlers" / "requirements.txt"]))
