import re
import subprocess
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from infra import layer

COMMAND_MODULES = {"keyhop/rekey/plan/reading.py"}
"""The modules outside cli/ and public/ whose clients no function creates."""

NATIVE = {".so", ".pyd", ".dll", ".dylib"}


@pytest.fixture(scope="module")
def built() -> Path:
    """The layer that pip has built, once per content of layer.py and of the requirements."""
    return layer.built()


def test_the_layer_is_pure_python(built: Path):
    """One layer then serves arm64, x86-64 and the laptop."""
    assert not [path for path in built.rglob("*") if path.suffix in NATIVE]
    wheels = list(built.glob("python/*.dist-info/WHEEL"))
    assert wheels
    for wheel in wheels:
        assert Parser().parsestr(wheel.read_text())["Root-Is-Purelib"] == "true", wheel
        assert re.search(r"^Tag: .*-none-any$", wheel.read_text(), re.M), wheel


def test_the_layer_has_exactly_the_requirements(built: Path):
    required = {
        re.sub(r"[-_.]+", "-", line).lower()
        for line in layer.REQUIREMENTS.read_text().splitlines()
        if not line.startswith("#")
    }
    installed = {
        re.sub(r"[-_.]+", "-", path.stem.replace("-", "==", 1)).lower()
        for path in built.glob("python/*.dist-info")
    }
    assert installed == required


def test_every_requirement_is_pinned_exactly():
    lines = [text for text in layer.REQUIREMENTS.read_text().splitlines() if text[:1] != "#"]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", line) for line in lines)


def test_the_layer_has_the_dependencies_of_every_package(built: Path):
    """pip does not check them because of --no-deps."""
    installed = {_normalized(path.name.split("-")[0]) for path in built.glob("python/*.dist-info")}
    needed = {
        _normalized(requirement.name)
        for path in built.glob("python/*.dist-info/METADATA")
        for line in Parser().parsestr(path.read_text()).get_all("Requires-Dist", [])
        for requirement in [Requirement(line)]
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }
    assert needed <= installed


def test_the_layer_does_not_depend_on_its_build_folder(built: Path):
    assert not (built / "python" / "bin").exists()
    assert not list(built.rglob("__pycache__"))


def test_the_layer_has_exactly_the_models_of_the_services_that_functions_call(built: Path):
    """A client without its model would fail only in the deployed function."""
    models = {path.name for path in (built / "python/botocore/data").glob("*/")}
    services = set()
    lambdas = layer.ROOT / "lambdas"
    for source in lambdas.rglob("*.py"):
        module = source.relative_to(lambdas)
        if not {"cli", "public"} & {*module.parts} and str(module) not in COMMAND_MODULES:
            client_call = r"\b(?:aws_)?client(?:_of|_beside)?\(\s*\"([a-z0-9-]+)\""
            services |= set(re.findall(client_call, source.read_text()))
    # The X-Ray SDK creates a client when it is imported.
    assert models == services | {"xray"}


def test_a_layer_is_built_once(built: Path, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("pip was run again")

    monkeypatch.setattr(subprocess, "run", never)
    assert layer.built() == built


def test_other_requirements_cause_another_layer(tmp_path: Path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("six==1.17.0\n")
    first = layer.fingerprint(requirements)
    requirements.write_text("six==1.16.0\n")
    assert layer.fingerprint(requirements) != first
    assert layer.fingerprint() == layer.fingerprint()


def test_an_unavailable_package_causes_a_plain_error_and_leaves_no_files(tmp_path: Path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("--no-index\nsix==99.0\n")
    with pytest.raises(layer.LayerError, match=r"pure Python wheel.*six==99\.0") as error:
        layer.built(requirements, tmp_path / "layers")
    assert "Traceback" not in str(error.value)
    assert not list((tmp_path / "layers").iterdir())


def test_a_package_index_that_does_not_answer_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def hang(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, layer.PATIENCE_SECONDS)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(layer.LayerError, match=r"requirements\.txt within 300 seconds"):
        layer.built(cache=tmp_path)


def test_the_second_of_two_builds_uses_the_layer_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two synths at the same time both build; neither fails and one layer remains."""
    ready = tmp_path / layer.fingerprint()

    def install(_: Path, target: Path) -> None:
        target.mkdir(parents=True)
        (ready / "python").mkdir(parents=True)
        (ready / "python" / "the_first.py").touch()

    monkeypatch.setattr(layer, "_install", install)
    assert layer.built(cache=tmp_path) == ready
    assert list(tmp_path.iterdir()) == [ready]
    assert (ready / "python" / "the_first.py").exists()


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
