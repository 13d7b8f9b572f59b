"""docs/reference/permissions.md is what is made of the recorded calls, and of the template."""

import json
import re
from collections.abc import Iterable, Iterator

import pytest

from testing.iam.simulator import Call, simulator
from tests.docs.permissions import PAGE, WAYS, calls_of, page, policy


def test_the_page_is_made_of_what_is_recorded() -> None:
    """Else `make sessions` writes it."""
    assert PAGE.read_text() == page(PAGE.read_text())


def test_each_way_has_its_policy_in_the_page() -> None:
    assert re.findall(r"<!-- policy: ([\w ]+) -->", PAGE.read_text()) == [*WAYS]


@pytest.mark.parametrize("name", WAYS)
def test_a_policy_allows_the_recorded_calls(name: str) -> None:
    """With the names that they were recorded with."""
    text = json.dumps(policy(calls_of(WAYS[name])))
    for shown, recorded in (
        ("REGION", "eu-west-1"),
        ("ACCOUNT", "111122223333"),
        ("BUCKET", "the-results"),
        ("QUEUE", "the-failures"),
    ):
        text = text.replace(shown, recorded)
    statements = json.loads(text)["Statement"]
    calls = [Call("somebody", *one) for one in _as_documented(calls_of(WAYS[name]))]
    assert calls
    assert [call for call in calls if not simulator().decide(statements, call).allowed] == []


def _as_documented(calls: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """On the tables that the documents name."""
    for action, resource in calls:
        for name, shown in (("Keyhop-shards-Sharded", "Audit-shards"), ("Sharded", "Audit")):
            resource = resource.replace(f"table/{name}", f"table/{shown}")
        yield action, resource.replace("table/Kept", "table/Orders")
