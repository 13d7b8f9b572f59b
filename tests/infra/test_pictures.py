"""docs/stack.svg is drawn from the template, and shows all that is ours in it."""

import re
import runpy
from typing import Any

import pytest

from testing.servers import ROOT
from tests.infra.conftest import deployed, stack_of


@pytest.fixture(scope="module")
def drawing() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "draw_stack.py"))


def test_it_is_drawn_from_the_template_as_it_is(drawing: dict[str, Any]) -> None:
    picture = drawing["draw"](deployed(stack_of(drawing["EVERY_OPTION"])))
    assert (ROOT / "docs" / "stack.svg").read_text() == picture, "run make pictures"


def test_each_function_and_machine_is_in_it(drawing: dict[str, Any]) -> None:
    template = deployed(stack_of(drawing["EVERY_OPTION"]))
    picture = (ROOT / "docs" / "stack.svg").read_text()
    for kind, named in (("Lambda::Function", "FunctionName"), ("StepFunctions::StateMachine", "")):
        for resource in template.of_type(f"AWS::{kind}").values():
            name = resource["Properties"][named or "StateMachineName"].removeprefix("Keyhop-")
            assert f">{name}</text>" in picture


def test_nothing_that_an_option_adds_is_missing() -> None:
    """The golden templates have all options between them."""
    picture = (ROOT / "docs" / "stack.svg").read_text()
    templates = [path.read_text() for path in (ROOT / "tests/golden/files/templates").glob("*")]
    named = r'"(?:FunctionName|StateMachineName)": "Keyhop-(\w+)"'
    for name in {name for text in templates for name in re.findall(named, text)}:
        assert f">{name}</text>" in picture


def test_an_unknown_kind_of_resource_is_refused(drawing: dict[str, Any]) -> None:
    template = deployed(stack_of(drawing["EVERY_OPTION"]))
    more = {**template.body["Resources"], "New": {"Type": "AWS::Kinesis::Stream"}}
    with pytest.raises(SystemExit, match=r"does not know these resources: .*Kinesis"):
        drawing["draw"](type(template)({**template.body, "Resources": more}))
