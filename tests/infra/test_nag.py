"""cdk-nag's packs: nothing is found but what is acknowledged, and only that is acknowledged."""

from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks, NagPack, ServerlessChecks
from constructs import IConstruct

from infra import permissions
from infra.config import Config
from infra.stack import KeyhopStack
from testing.marks import prove
from tests.infra import apps
from tests.infra.conftest import CONTEXTS

PACKS = (AwsSolutionsChecks, ServerlessChecks)
Told = list[tuple[str, str, str]]
"""Construct path, id of the rule, reason."""


WATCHED = (prove("named"), "mixed", prove("reported"), prove("rekeyed"))
"""Without key indexes and sharded tables, with them, with reports, and with pairs of tables."""


@pytest.fixture(scope="module", params=WATCHED)
def context(request: pytest.FixtureRequest) -> dict[str, Any]:
    return CONTEXTS[request.param]


@pytest.fixture(scope="module")
def app(context: dict[str, Any]) -> App:
    made = apps.asset_free_app()
    KeyhopStack(made, Config.from_context(context))
    return made


@pytest.fixture(scope="module")
def unexcused(context: dict[str, Any]) -> tuple[App, Told]:
    """The same app with the acknowledgements held back, and what they were."""
    told: Told = []

    class Recorder:
        def __init__(self, construct: IConstruct) -> None:
            self.construct = construct

        @classmethod
        def of(cls, construct: IConstruct) -> "Recorder":
            return cls(construct)

        def acknowledge(self, rule: Any) -> None:
            told.append((self.construct.node.path, rule.id, rule.reason))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permissions, "Validations", Recorder)
        made = apps.asset_free_app()
        KeyhopStack(made, Config.from_context(context))
    return made, told


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_finds_no_error_and_no_warning(app: App, pack: type[NagPack]):
    assert list(findings(app, pack)) == []


def test_the_packs_do_look(unexcused: tuple[App, Told]):
    bare, _ = unexcused
    for pack in PACKS:
        assert list(findings(bare, pack))


def test_the_packs_pass_as_plugins_of_a_synth(app: App):
    """As a user would add them; a violation ends the synth."""
    Validations.of(app).add_plugins(*(pack(app) for pack in PACKS))
    app.synth()


def test_every_acknowledgement_is_needed(unexcused: tuple[App, Told]):
    bare, told = unexcused
    found = [one for pack in PACKS for one in findings(bare, pack)]
    unneeded = {
        (path, rule)
        for path, rule, _ in told
        if not any(rule == seen and f"{at}/".startswith(f"{path}/") for seen, at in found)
    }
    assert unneeded == set()


def test_every_acknowledgement_has_a_sentence_of_reason(unexcused: tuple[App, Told]):
    _, told = unexcused
    for path, rule, reason in told:
        assert len(reason.split()) >= 8, (path, rule)
        assert reason.endswith("."), (path, rule)


def test_nothing_is_acknowledged_for_the_whole_stack(unexcused: tuple[App, Told]):
    _, told = unexcused
    assert not [path for path, _, _ in told if path.count("/") < 2]


def findings(app: App, pack: type[NagPack]) -> Iterator[tuple[str, str]]:
    """(id of the rule, path of the construct) of each finding, errors and warnings alike."""
    for violation in pack(app).validate_scope(app).violations:  # type: ignore[call-arg]
        for resource in violation.violating_resources:
            yield violation.rule_name, resource.construct_path or ""
