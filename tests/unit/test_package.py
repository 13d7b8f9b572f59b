"""The wheel, built from a copy of what it is made of: what it holds and what it says of itself."""

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """As `make dist` builds it."""
    return zipfile.ZipFile(wheel_in(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    """What `pip show` tells."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_it_has_the_command_the_library_and_the_constructs_with_all_that_they_need(
    wheel: zipfile.ZipFile,
):
    held = set(wheel.namelist())
    for folder, package in (("lambdas/keyhop", "keyhop"), ("infra", "keyhop_cdk")):
        sources = {path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*.py")}
        assert {f"{package}/{path}" for path in sources} <= held
        assert f"{package}/py.typed" in held
    functions = [*(ROOT / "lambdas" / "handlers").glob("*.py"), *ROOT.glob("statemachines/*.json")]
    assert len(functions) > 15
    for path in (*functions, ROOT / "lambdas" / "requirements.txt"):
        name = f"keyhop_cdk/data/{path.relative_to(ROOT)}"
        assert wheel.read(name) == path.read_bytes()
    assert "keyhop_cdk/data/lambdas/keyhop/tasks.py" in held
    pages = {f"keyhop/{path.relative_to(ROOT)}" for path in (ROOT / "docs").rglob("*.md")}
    assert {name for name in held if name.endswith(".md")} == pages


def test_it_has_nothing_else(wheel: zipfile.ZipFile):
    tops = {name.partition("/")[0].partition("-")[0] for name in wheel.namelist()}
    assert tops == {"keyhop", "keyhop_cdk"}
    for left_out in ("data/lambdas/keyhop/cli", "data/lambdas/keyhop/docs"):
        assert not [name for name in wheel.namelist() if left_out in name]


def test_its_version_is_said_in_one_place(metadata: Message):
    module = ast.parse((ROOT / "lambdas" / "keyhop" / "__init__.py").read_text())
    named = {one.targets[0].id: one.value for one in module.body if isinstance(one, ast.Assign)}
    version = named["__version__"].value
    assert metadata["Version"] == version
    elsewhere = [ROOT / "pyproject.toml", ROOT / "setup.py", ROOT / "package.json"]
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
