"""Behaviour is what it was: each golden file is captured again and compared."""

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
GONE = "(nothing)"
RUNS = ("definitions.json", "exit_statuses.json", "runs/key_index.json")
"""What takes seconds to capture again."""
WHOLE = [
    prove(name) if name in RUNS else name
    for name in capture.CAPTURES
    if name not in ("identities.json", "errors.json")
]


@pytest.fixture(autouse=True)
def one_database(dynamodb_local_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the other tests."""
    monkeypatch.setattr(index_runs, "dynamodb_local", lambda: nullcontext(dynamodb_local_url))


def stored(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """What differs, a line for each place."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            yield from differences(before.get(name, GONE), now.get(name, GONE), f"{path}/{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{path}/{place}")
    elif before != now:
        yield f"{path}:\n  - {shown(before)}\n  + {shown(now)}"


def shown(value: Any) -> str:
    return GONE if value == GONE else json.dumps(value, ensure_ascii=False)[:2000]


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_captured_is_what_it_was(name: str) -> None:
    told = "\n".join(differences(json.loads(stored(name)), json.loads(capture.captured(name))))
    if told:
        pytest.fail(f"{name}: if this is meant, {RENEW} {name}\n{told}", False)


def test_errors_say_what_they_said() -> None:
    """Wherever in the code they are said."""
    before, now = set(json.loads(stored("errors.json"))), set(capture.errors())
    told = [f"- {said}" for said in sorted(before - now)]
    told += [f"+ {said}" for said in sorted(now - before)]
    if told:
        pytest.fail("\n".join(["errors.json: vanished (-), or new (+):", *told]), False)


@pytest.mark.parametrize("context", CONTEXTS)
def test_an_upgrade_of_a_deployed_stack_moves_no_id_of_a_stateful_or_named_resource(
    context: str,
) -> None:
    """New resources may come; one that is there keeps its logical id, type and physical name."""
    before = json.loads(stored("identities.json"))[context]
    now = deployment.identities_in(deployment.template(context))
    moved = [
        f"{logical_id}: {json.dumps(resource)} -> {json.dumps(now.get(logical_id))}"
        for logical_id, resource in sorted(before.items())
        if now.get(logical_id) != resource
    ]
    if moved:
        pytest.fail("\n".join([f"{context}: moved or gone:", *moved]), False)
