"""Check that docs/schemas is generated from the code and accepts what the code accepts."""

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
"""The page that shows inputs of EnumerateKeys."""

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
"""The parser of each input, and a valid input."""
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 0.25, 0.5, 1.0, 1.5, -1, 5000, 10_001, 1_000_001, 10**15, 10**16),
    *("", "a", "abc", "auto", "index", "skip", "csv", "jsonl", "_", "_3", "a b", "..", "\x00bc"),
    *("arn:aws:dynamodb:eu-west-1:111122223333:table/Orders", "KEYS_ONLY", "NEW_AND_OLD_IMAGES"),
    *([], [1], [None, None], ["a", None], [1, 2, 3], {}, {"kind": "build"}),
]
"""Values for each field. test_item_json.py has typed values, which only the code can read."""
NO_OBJECTS = [None, [], "Orders", 1, True]
BESIDE: dict[str, list[dict[str, Any]]] = {
    "EnumerateKeys": [{}, {"logical": True}, {"method": "index"}],
}


def test_the_published_files_are_generated_from_the_code() -> None:
    published = {path.name: path.read_text() for path in FOLDER.glob("*")}
    assert published == files(), "stale: run make schemas"


@pytest.mark.parametrize("name", sorted(files()))
def test_a_file_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(json.loads(files()[name]))


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_a_schema_and_the_code_accept_the_same_inputs(name: str) -> None:
    """Try each value in each field, and pairs of fields with valid values."""
    differ = [
        (job_input, code, schema)
        for job_input in [*_one_field(name), *_two_fields(name), *NO_OBJECTS]
        if (code := _is_accepted(name, job_input))
        != (schema := not faults(input_of(name), job_input))
    ]
    assert differ == []


def _is_accepted(name: str, job_input: Any) -> bool:
    try:
        INPUTS[name][0](job_input)
    except InvalidInput:
        return False
    return True


def _fields(name: str) -> list[str]:
    return [*EXCHANGES[name].input()["properties"], "noSuchField"]


def _one_field(name: str) -> Iterator[dict[str, Any]]:
    valid = INPUTS[name][1]
    yield valid
    for field in _fields(name):
        yield {key: value for key, value in valid.items() if key != field}
        yield from ({**valid, field: value} for value in VALUES)


def _two_fields(name: str) -> Iterator[dict[str, Any]]:
    """Yield inputs with two fields that are valid alone, on each base of the input."""
    for base in BESIDE.get(name, [{}]):
        start = {**INPUTS[name][1], **base}
        valid = {
            field: [value for value in VALUES if _is_accepted_alone(name, field, value)][:2]
            for field in _fields(name)
        }
        for pair in combinations(valid, 2):
            for values in product(*(valid[field] for field in pair)):
                yield {**start, **dict(zip(pair, values, strict=True))}


def _is_accepted_alone(name: str, field: str, value: Any) -> bool:
    job_input = {**INPUTS[name][1], field: value}
    return any(_is_accepted(name, {**job_input, **base}) for base in BESIDE.get(name, [{}]))


def test_the_field_that_step_functions_adds_is_accepted() -> None:
    job_input = {"table": "Orders", STARTED_BY: "arn:aws:states:..."}
    assert faults(input_of("EnumerateKeys"), job_input) == []


def test_the_inputs_on_the_page_are_accepted() -> None:
    texts = re.findall(r"`(\{\"table\": \"Orders\"[^`]*\})`", RUNS)
    inputs = [json.loads(text) for text in texts]
    assert inputs
    for job_input in inputs:
        assert faults(input_of("EnumerateKeys"), job_input) == []
