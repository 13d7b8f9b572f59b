"""Check the wheel, the versions that it requires, and what it imports.

The set-up installs the versions in the requirements files without resolving them, so they must be
exact and agree. The package itself requires ranges that contain these versions and begin with those
of requirements-lowest.txt.
"""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from testing.package import installed_in, wheel_in
from testing.servers import LOCAL_CREDENTIALS, ROOT
from testing.smoke import smoke

CONTENTS = (
    ("keyhop", "lambdas/keyhop", "*"),
    ("keyhop/docs", "docs", "*.md"),
    ("keyhop_cdk", "infra", "*"),
    ("keyhop_cdk/data/lambdas/handlers", "lambdas/handlers", "*"),
    ("keyhop_cdk/data/statemachines", "statemachines", "*"),
)
"""Each package of the wheel, its source folder, and the files that it takes from there."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build the wheel as `make dist` does."""
    return zipfile.ZipFile(wheel_in(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    """Return the metadata of the wheel, as `pip show` reads it."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_it_contains_the_command_the_library_the_constructs_and_their_data(wheel: zipfile.ZipFile):
    sources = {
        f"{package}/{path.relative_to(ROOT / folder)}": path.read_bytes()
        for package, folder, pattern in CONTENTS
        for path in (ROOT / folder).rglob(pattern)
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(names) == sorted(sources)
    assert not [name for name in names if wheel.read(name) != sources[name]]


def test_its_version_is_written_in_one_place(metadata: Message):
    module = ast.parse((ROOT / "lambdas" / "keyhop" / "__init__.py").read_text())
    values = {
        node.targets[0].id: node.value for node in module.body if isinstance(node, ast.Assign)
    }
    version = values["__version__"].value
    assert metadata["Version"] == version
    other_files = [ROOT / "pyproject.toml", ROOT / "package.json"]
    assert not [path for path in other_files if f'"{version}"' in path.read_text()]


def test_its_metadata_has_a_description_and_the_licence(wheel: zipfile.ZipFile, metadata: Message):
    assert metadata["License-Expression"] == "Apache-2.0"
    (name,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))
    assert "Apache License\n" in wheel.read(name).decode()
    assert metadata["Summary"]
    assert metadata["Keywords"]
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata.get_payload().startswith("# Keyhop")


def test_the_command_needs_five_packages_without_exact_versions(metadata: Message):
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {line.split(">=")[0].split("<")[0] for line in needed} == {
        *("boto3", "cattrs", "click", "pyyaml", "rich")
    }
    assert not [
        line for line in metadata.get_all("Requires-Dist", []) if "==" in line.split(";")[0]
    ]


@pytest.mark.prove
def test_the_installed_command_needs_no_java_and_no_node(wheel: zipfile.ZipFile, tmp_path: Path):
    site = installed_in(tmp_path / "site", Path(str(wheel.filename)))
    smoke([sys.executable, "-m", "keyhop"], tmp_path, {"PYTHONPATH": str(site)})


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
    """Return the versions of each package in these files."""
    versions = defaultdict(set)
    for line in (line for path in files for line in path.read_text().splitlines()):
        if not line.startswith(("#", "-r ")):
            name, _, version = line.partition("==")
            versions[name.lower()].add(version)
    return versions


def test_every_package_has_one_exact_version():
    assert len(FILES) == 5
    for name, versions in {**pins(FILES), **pins([LOWEST])}.items():
        (version,) = versions
        assert re.fullmatch(r"\d[\w.]*", version), name


def test_tested_versions_lie_within_the_ranges_of_the_package():
    tested = pins(FILES)
    for needed in RANGES:
        (version,) = tested[needed.name]
        assert version in needed.specifier


def test_the_lowest_tested_versions_are_the_lower_ends_of_the_ranges():
    lowest = pins([LOWEST])
    for needed in (requirement for requirement in RANGES if requirement.name != "hatchling"):
        (lower,) = (clause.version for clause in needed.specifier if clause.operator == ">=")
        (version,) = lowest[needed.name]
        assert version in Requirement(f"x=={lower}").specifier, needed.name


def test_the_layer_of_the_functions_has_no_packages_for_terminals():
    """The contract on click and rich in pyproject.toml relies on this."""
    assert not {"click", "rich"} & set(pins([ROOT / "lambdas" / "handlers" / "requirements.txt"]))


BEGIN = f"""
import sys
import keyhop.cli.main
import keyhop.cli.keys_actions
from keyhop.dynamodb.client import Endpoint, connect
connect(Endpoint(url="http://127.0.0.1:9", region={LOCAL_CREDENTIALS["region_name"]!r}))
print(*sys.modules)
"""
LATER = {
    "asyncio": "of no use to a command",
    "attr": "cattrs's",
    "boto3": "S3's transfers; botocore is enough for DynamoDB",
    "cattrs": "for records in files",
    "rich": "for progress in a terminal",
    "s3transfer": "boto3's",
}


def test_packages_that_the_first_request_does_not_need_are_imported_later() -> None:
    """Imports take most of the time until the first request of `keyhop keys`."""
    process = subprocess.run(
        [sys.executable, "-c", BEGIN], cwd=ROOT / "lambdas", stdout=subprocess.PIPE, text=True
    )
    assert process.returncode == 0
    imported = {name.partition(".")[0] for name in process.stdout.split()}
    assert "botocore" in imported
    assert not imported & set(LATER)
