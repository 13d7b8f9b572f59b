"""The wheel, built from the source distribution: its files and its metadata."""

import ast
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from testing.package import installed_in, wheel_in
from testing.servers import ROOT
from testing.smoke import smoke

CONTENTS = (
    ("keyhop", "lambdas/keyhop", "*"),
    ("keyhop/docs", "docs", "*.md"),
    ("keyhop_cdk", "infra", "*"),
    ("keyhop_cdk/data/lambdas/handlers", "lambdas/handlers", "*"),
    ("keyhop_cdk/data/statemachines", "statemachines", "*"),
)
"""Each package of the wheel, the folder it is made of, and which files of the folder it has."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """As `make dist` builds it."""
    return zipfile.ZipFile(wheel_in(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    """What `pip show` tells."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_it_has_the_command_the_library_the_constructs_and_what_they_deploy(
    wheel: zipfile.ZipFile,
):
    sources = {
        f"{package}/{path.relative_to(ROOT / folder)}": path.read_bytes()
        for package, folder, pattern in CONTENTS
        for path in (ROOT / folder).rglob(pattern)
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(held) == sorted(sources)
    assert not [name for name in held if wheel.read(name) != sources[name]]


def test_its_version_is_said_in_one_place(metadata: Message):
    module = ast.parse((ROOT / "lambdas" / "keyhop" / "__init__.py").read_text())
    named = {one.targets[0].id: one.value for one in module.body if isinstance(one, ast.Assign)}
    version = named["__version__"].value
    assert metadata["Version"] == version
    elsewhere = [ROOT / "pyproject.toml", ROOT / "package.json"]
    assert not [path for path in elsewhere if f'"{version}"' in path.read_text()]


def test_it_says_what_it_is_and_under_which_licence(wheel: zipfile.ZipFile, metadata: Message):
    assert metadata["License-Expression"] == "Apache-2.0"
    (name,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))
    assert "Apache License\n" in wheel.read(name).decode()
    assert metadata["Summary"]
    assert metadata["Keywords"]
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata.get_payload().startswith("# Keyhop")


def test_the_command_needs_five_packages_and_leaves_room_beside_it(metadata: Message):
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {line.split(">=")[0].split("<")[0] for line in needed} == {
        *("boto3", "cattrs", "click", "pyyaml", "rich")
    }
    assert not [
        line for line in metadata.get_all("Requires-Dist", []) if "==" in line.split(";")[0]
    ]


@pytest.mark.prove
def test_the_installed_command_lists_keys_without_java_and_node(
    wheel: zipfile.ZipFile, tmp_path: Path
):
    site = installed_in(tmp_path / "site", Path(str(wheel.filename)))
    smoke([sys.executable, "-m", "keyhop"], tmp_path, {"PYTHONPATH": str(site)})
