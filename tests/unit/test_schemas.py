"""docs/schemas: made of the code, true of it, and compatible with what was published before."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, product
from typing import Any

import pytest
from handlers.sharding_requests import MoveRequest, QueryRequest, WriteRequest
from jsonschema import Draft202012Validator
from keyhop.checks import STARTED_BY
from keyhop.each.request import EachInput
from keyhop.errors import InvalidInput
from keyhop.key_index.request import Order, WalkInput
from keyhop.keys.request import KeysInput

from testing.schemas.catalogue import EXCHANGES, FOLDER, files
from testing.schemas.watch import faults, input_of

RUNS = (FOLDER.parent / "how-to" / "runs.md").read_text()
"""Inputs of the README, and outputs of the machines and functions, as of that commit."""

ORDERS = {"table": "Orders"}
WALK = {"kind": "verify", "repair": True, "grace_seconds": 10.0, "max_write_rate": 1000.0}
DRAINED = {"table": "Audit", "key": "/f.txt", "shards": 1}
INPUTS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "EnumerateKeys": (KeysInput.parse, ORDERS),
    "ForEachKey": (EachInput.parse, {**ORDERS, "put": {"sk": "#feature"}}),
    "WalkKeyIndexes": (WalkInput.parse, {**ORDERS, "walk": WALK}),
    "BuildKeyIndex": (partial(Order.parse, "build"), ORDERS),
    "VerifyKeyIndex": (partial(Order.parse, "verify"), ORDERS),
    "RemoveKeyIndex": (partial(Order.parse, "remove"), ORDERS),
    "DrainShards": (MoveRequest.from_event, DRAINED),
    "WriteSharded": (WriteRequest.from_event, {"table": "Audit", "items": []}),
    "QuerySharded": (QueryRequest.from_event, {"table": "Audit", "key": "/f.txt"}),
}
"""What reads each input, and one that is right."""
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 0.25, 0.5, 1.0, 1.5, -1, 5000, 10_001, 1_000_001, 10**15, 10**16),
    *("", "a", "abc", "auto", "index", "skip", "csv", "jsonl", "_", "_3", "a b", "..", "\x00bc"),
    *("arn:aws:dynamodb:eu-west-1:111122223333:table/Orders", "KEYS_ONLY", "NEW_AND_OLD_IMAGES"),
    *([], [1], [None, None], ["a", None], [1, 2, 3], {}, {"kind": "build"}),
]
"""Tried in each field. Typed values are left to test_item_json.py: only the code can read them."""
BESIDE: dict[str, list[dict[str, Any]]] = {
    "EnumerateKeys": [{}, {"logical": True}, {"method": "index"}],
}


def test_the_published_files_are_those_of_the_code() -> None:
    there = {path.name: path.read_text() for path in FOLDER.glob("*")}
    assert there == files(), "stale: run make schemas"


@pytest.mark.parametrize("name", sorted(files()))
def test_a_file_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(json.loads(files()[name]))


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_a_schema_takes_and_refuses_what_the_code_does(name: str) -> None:
    """Each value in each field; and each two fields that are right by themselves."""
    differ = [
        (given, code, schema)
        for given in [*_one_field(name), *_two_fields(name), *_no_object(name)]
        if (code := _takes(name, given)) != (schema := not faults(input_of(name), given))
    ]
    assert differ == []


def _takes(name: str, given: Any) -> bool:
    try:
        INPUTS[name][0](given)
    except InvalidInput:
        return False
    return True


def _fields(name: str) -> list[str]:
    return [*EXCHANGES[name].input()["properties"], "noSuchField"]


def _one_field(name: str) -> Iterator[dict[str, Any]]:
    right = INPUTS[name][1]
    yield right
    for field in _fields(name):
        yield {other: value for other, value in right.items() if other != field}
        yield from ({**right, field: value} for value in VALUES)


def _two_fields(name: str) -> Iterator[dict[str, Any]]:
    """Beside what makes most others wrong, or right; of each field a few values that are right."""
    for base in BESIDE.get(name, [{}]):
        given = {**INPUTS[name][1], **base}
        right = {
            field: [one for one in VALUES if _takes_alone(name, field, one)][:2]
            for field in _fields(name)
        }
        for one, other in combinations(right, 2):
            for first, second in product(right[one], right[other]):
                yield {**given, one: first, other: second}


def _takes_alone(name: str, field: str, value: Any) -> bool:
    given = {**INPUTS[name][1], field: value}
    return any(_takes(name, {**given, **base}) for base in BESIDE.get(name, [{}]))


def _no_object(name: str) -> list[Any]:
    return [None, [], "Orders", 1, True]


def test_what_step_functions_adds_is_taken() -> None:
    given = {"table": "Orders", STARTED_BY: "arn:aws:states:..."}
    assert faults(input_of("EnumerateKeys"), given) == []


def test_the_documents_show_inputs_that_are_taken() -> None:
    shown = re.findall(r"`(\{\"table\": \"Orders\"[^`]*\})`", RUNS)
    inputs = [json.loads(text) for text in shown]
    assert inputs
    for given in inputs:
        assert faults(input_of("EnumerateKeys"), given) == []
