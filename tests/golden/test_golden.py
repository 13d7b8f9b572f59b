"""Behaviour is what it was: each golden file is captured again and compared."""

import difflib
import json

import pytest

from tests.golden import capture

RENEW = "python -m tests.golden.capture --write"
WHOLE = [name for name in capture.CAPTURES if name not in ("identities.json", "errors.json")]


def stored(name: str) -> str:
    return (capture.FILES / name).read_text(encoding="utf-8")


def differences(name: str, now: str) -> str:
    """What differs, a line each; long lines only around where they differ."""
    lines = difflib.unified_diff(
        stored(name).splitlines(), now.splitlines(), "golden", "now", lineterm="", n=0
    )
    return "\n".join(line if len(line) < 600 else f"{line[:600]} ..." for line in lines)


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_captured_is_what_it_was(name: str) -> None:
    now = capture.captured(name)
    if now != stored(name):
        pytest.fail(f"{name}: if that is meant, {RENEW} {name}\n{differences(name, now)}", False)


def test_errors_say_what_they_said() -> None:
    """Wherever in the code they are said."""
    before, now = set(json.loads(stored("errors.json"))), set(capture.errors())
    told = [f"- {said}" for said in sorted(before - now)]
    told += [f"+ {said}" for said in sorted(now - before)]
    if told:
        pytest.fail("\n".join(["errors.json: vanished (-), or new (+):", *told]), False)


@pytest.mark.parametrize("context", capture.CONTEXTS)
def test_an_upgrade_of_a_deployed_stack_moves_no_id_of_a_stateful_or_named_resource(
    context: str,
) -> None:
    """New resources may come; one that is there keeps its logical id, type and physical name."""
    before = json.loads(stored("identities.json"))[context]
    now = capture.identities_in(capture.template(context))
    moved = [
        f"{logical_id}: {json.dumps(resource)} -> {json.dumps(now.get(logical_id))}"
        for logical_id, resource in sorted(before.items())
        if now.get(logical_id) != resource
    ]
    if moved:
        pytest.fail("\n".join([f"{context}: moved or gone:", *moved]), False)


def test_an_unfinished_run_of_layout_2_is_resumed() -> None:
    """One of a directory, which was stopped in the middle of a segment."""
    status, said, keys = capture.resumed("unfinished")
    assert (status, keys) == (0, capture.KEYS), said


def test_a_finished_run_of_layout_2_is_known_as_one() -> None:
    status, said, keys = capture.resumed("finished")
    assert (status, keys) == (2, capture.KEYS)
    assert "holds a finished run of Orders" in said


def test_an_unfinished_run_of_layout_2_in_s3_is_resumed() -> None:
    output, keys = capture.resumed_in_s3("unfinished")
    assert (output["run"], output["finished"], keys) == ("stored", True, capture.KEYS)


def test_a_finished_run_of_layout_2_in_s3_is_read() -> None:
    """A check reads all its parts, and finds nothing that they lack."""
    output, keys = capture.resumed_in_s3("finished", verifyShare=1)
    assert (output["verify"]["missing"], output["verify"]["surplus"]) == (0, 0)
    assert (output["keys"], keys) == (len(capture.KEYS), capture.KEYS)
