"""Tests that capture each golden file again, and compare it with the stored one."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from testing.marks import prove
from tests.golden import capture
from tests.golden.capture import deployment, index_runs
from tests.golden.capture.contexts import CONTEXTS, FILES

RENEW = "python -m tests.golden.capture --write"
MISSING = "(nothing)"
SLOW = ("definitions.json", "exit_statuses.json", "runs/fleet.json", "runs/key_index.json")
"""The files that take seconds to capture."""
COMPARED = [
    prove(name) if name in SLOW or name.startswith("templates/") else name
    for name in capture.CAPTURES
    if name not in ("identities.json", "errors.json")
]


@pytest.fixture(autouse=True)
def shared_database(dynamodb_local_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the database of the other tests."""
    monkeypatch.setattr(index_runs, "dynamodb_local", lambda: nullcontext(dynamodb_local_url))


def stored(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Yield a text for each difference."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            pair = (before.get(name, MISSING), now.get(name, MISSING))
            yield from differences(*pair, f"{path}/{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{path}/{place}")
    elif before != now:
        yield f"{path}:\n  - {shortened(before)}\n  + {shortened(now)}"


def shortened(value: Any) -> str:
    return MISSING if value == MISSING else json.dumps(value, ensure_ascii=False)[:2000]


@pytest.mark.parametrize("name", COMPARED)
def test_the_captured_behaviour_has_not_changed(name: str) -> None:
    report = "\n".join(differences(json.loads(stored(name)), json.loads(capture.captured(name))))
    if report:
        pytest.fail(f"{name}: if this is meant, {RENEW} {name}\n{report}", False)


def test_the_sentences_of_errors_have_not_changed() -> None:
    """The place of a sentence in the code may change."""
    before, now = set(json.loads(stored("errors.json"))), set(capture.errors())
    changes = [f"- {sentence}" for sentence in sorted(before - now)]
    changes += [f"+ {sentence}" for sentence in sorted(now - before)]
    if changes:
        pytest.fail("\n".join(["errors.json: vanished (-), or new (+):", *changes]), False)


@pytest.mark.parametrize("context", CONTEXTS)
def test_an_upgrade_keeps_the_ids_of_stateful_and_named_resources(
    context: str,
) -> None:
    """An existing resource keeps its logical id, type and physical name; new ones are allowed."""
    before = json.loads(stored("identities.json"))[context]
    now = deployment.identities_in(deployment.template(context))
    changed = [
        f"{logical_id}: {json.dumps(resource)} -> {json.dumps(now.get(logical_id))}"
        for logical_id, resource in sorted(before.items())
        if now.get(logical_id) != resource
    ]
    if changed:
        pytest.fail("\n".join([f"{context}: moved or gone:", *changed]), False)
