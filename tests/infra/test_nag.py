"""Tests that cdk-nag reports only acknowledged findings, and needs all acknowledgements."""

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
from tests.infra.apps import asset_free_app
from tests.infra.conftest import CONTEXTS

PACKS = (AwsSolutionsChecks, ServerlessChecks)
Unacknowledged = tuple[App, list[tuple[str, str, str]]]
"""An app, with the construct path, the rule and the reason of each missing acknowledgement."""

CHECKED_CONTEXTS = (prove("named"), "mixed", prove("reported"), prove("rekeyed"))
"""Deployments with keys only, with all capabilities, with reports, and with pairs of tables."""


@pytest.fixture(scope="module", params=CHECKED_CONTEXTS)
def context(request: pytest.FixtureRequest) -> dict[str, Any]:
    return CONTEXTS[request.param]


@pytest.fixture(scope="module")
def app(context: dict[str, Any]) -> App:
    app_with_stack = asset_free_app()
    KeyhopStack(app_with_stack, Config.from_context(context))
    return app_with_stack


@pytest.fixture(scope="module")
def unacknowledged(context: dict[str, Any]) -> Unacknowledged:
    """The app without its acknowledgements, and these acknowledgements."""
    acknowledgements: list[tuple[str, str, str]] = []

    class Recorder:
        def __init__(self, construct: IConstruct) -> None:
            self.construct = construct

        @classmethod
        def of(cls, construct: IConstruct) -> "Recorder":
            return cls(construct)

        def acknowledge(self, rule: Any) -> None:
            acknowledgements.append((self.construct.node.path, rule.id, rule.reason))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permissions, "Validations", Recorder)
        bare_app = asset_free_app()
        KeyhopStack(bare_app, Config.from_context(context))
    return bare_app, acknowledgements


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_finds_no_error_and_no_warning(app: App, pack: type[NagPack]):
    assert list(findings(app, pack)) == []


def test_the_packs_report_findings_without_acknowledgements(unacknowledged: Unacknowledged):
    bare_app, _ = unacknowledged
    for pack in PACKS:
        assert list(findings(bare_app, pack))


def test_the_packs_pass_as_plugins_of_a_synth(app: App):
    """A violation ends the synth of a user who adds the packs."""
    Validations.of(app).add_plugins(*(pack(app) for pack in PACKS))
    app.synth()


def test_every_acknowledgement_is_needed(unacknowledged: Unacknowledged):
    bare_app, acknowledgements = unacknowledged
    reported = [finding for pack in PACKS for finding in findings(bare_app, pack)]
    unneeded = {
        (path, rule)
        for path, rule, _ in acknowledgements
        if not any(
            rule == reported_rule and f"{construct}/".startswith(f"{path}/")
            for reported_rule, construct in reported
        )
    }
    assert unneeded == set()


def test_every_acknowledgement_has_a_reason_of_one_sentence(unacknowledged: Unacknowledged):
    _, acknowledgements = unacknowledged
    for path, rule, reason in acknowledgements:
        assert len(reason.split()) >= 8, (path, rule)
        assert reason.endswith("."), (path, rule)


def test_nothing_is_acknowledged_for_the_whole_stack(unacknowledged: Unacknowledged):
    _, acknowledgements = unacknowledged
    assert not [path for path, _, _ in acknowledgements if path.count("/") < 2]


def findings(app: App, pack: type[NagPack]) -> Iterator[tuple[str, str]]:
    """Yield the rule's id and the construct's path of each error and warning."""
    for violation in pack(app).validate_scope(app).violations:  # type: ignore[call-arg]
        for resource in violation.violating_resources:
            yield violation.rule_name, resource.construct_path or ""
