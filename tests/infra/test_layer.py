import re
import subprocess
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from infra import layer

OF_THE_COMMAND = {"keyhop/rekey/plan/reading.py"}
"""Beside cli/ and public/: modules whose clients no function makes (who reads a stream)."""

NATIVE = {".so", ".pyd", ".dll", ".dylib"}


@pytest.fixture(scope="module")
def fresh() -> Path:
    """Built for real, by pip, once for each content of layer.py and of the requirements."""
    return layer.built()


def test_the_layer_is_pure_python(fresh: Path):
    """So one layer serves arm64, x86-64 and the laptop."""
    assert not [path for path in fresh.rglob("*") if path.suffix in NATIVE]
    wheels = list(fresh.glob("python/*.dist-info/WHEEL"))
    assert wheels
    for wheel in wheels:
        assert Parser().parsestr(wheel.read_text())["Root-Is-Purelib"] == "true", wheel
        assert re.search(r"^Tag: .*-none-any$", wheel.read_text(), re.M), wheel


def test_the_layer_holds_what_the_requirements_say_and_nothing_else(fresh: Path):
    wanted = {
        re.sub(r"[-_.]+", "-", line).lower()
        for line in layer.REQUIREMENTS.read_text().splitlines()
        if not line.startswith("#")
    }
    held = {
        re.sub(r"[-_.]+", "-", path.stem.replace("-", "==", 1)).lower()
        for path in fresh.glob("python/*.dist-info")
    }
    assert held == wanted


def test_every_requirement_is_pinned_exactly():
    lines = [one for one in layer.REQUIREMENTS.read_text().splitlines() if one[:1] != "#"]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", line) for line in lines)


def test_everything_that_a_package_needs_is_in_the_layer_too(fresh: Path):
    """--no-deps: pip does not look."""
    held = {_plain(path.name.split("-")[0]) for path in fresh.glob("python/*.dist-info")}
    needed = {
        _plain(requirement.name)
        for path in fresh.glob("python/*.dist-info/METADATA")
        for line in Parser().parsestr(path.read_text()).get_all("Requires-Dist", [])
        for requirement in [Requirement(line)]
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }
    assert needed <= held


def test_nothing_in_the_layer_knows_where_it_was_built(fresh: Path):
    assert not (fresh / "python" / "bin").exists()
    assert not list(fresh.rglob("__pycache__"))


def test_the_layer_has_the_models_of_exactly_the_services_that_the_functions_call(fresh: Path):
    """A client without its model fails at its first use, in the deployed function only."""
    models = {path.name for path in (fresh / "python/botocore/data").glob("*/")}
    called = set()
    lambdas = layer.ROOT / "lambdas"
    for source in lambdas.rglob("*.py"):
        place = source.relative_to(lambdas)
        if not {"cli", "public"} & {*place.parts} and str(place) not in OF_THE_COMMAND:
            made = r"\b(?:aws_)?client(?:_of|_beside)?\(\s*\"([a-z0-9-]+)\""
            called |= set(re.findall(made, source.read_text()))
    # The X-Ray SDK makes a client of its own while it is imported.
    assert models == called | {"xray"}


def test_a_layer_is_built_once(fresh: Path, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("pip was run again")

    monkeypatch.setattr(subprocess, "run", never)
    assert layer.built() == fresh


def test_other_requirements_make_another_layer(tmp_path: Path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("six==1.17.0\n")
    first = layer.fingerprint(requirements)
    requirements.write_text("six==1.16.0\n")
    assert layer.fingerprint(requirements) != first
    assert layer.fingerprint() == layer.fingerprint()


def test_a_package_that_cannot_be_had_is_told_plainly_and_leaves_nothing(tmp_path: Path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("--no-index\nsix==99.0\n")
    with pytest.raises(layer.LayerError, match=r"pure Python wheel.*six==99\.0") as error:
        layer.built(requirements, tmp_path / "layers")
    assert "Traceback" not in str(error.value)
    assert not list((tmp_path / "layers").iterdir())


def test_a_package_index_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def hang(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, layer.PATIENCE_SECONDS)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(layer.LayerError, match=r"requirements\.txt within 300 seconds"):
        layer.built(cache=tmp_path)


def test_who_comes_second_takes_the_layer_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two synths at once both build; neither fails and one layer stays."""
    ready = tmp_path / layer.fingerprint()

    def install(_: Path, target: Path) -> None:
        target.mkdir(parents=True)
        (ready / "python").mkdir(parents=True)
        (ready / "python" / "the_first.py").touch()

    monkeypatch.setattr(layer, "_install", install)
    assert layer.built(cache=tmp_path) == ready
    assert list(tmp_path.iterdir()) == [ready]
    assert (ready / "python" / "the_first.py").exists()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
