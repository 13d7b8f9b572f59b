"""sharding-boto3.md: each parameter of boto3 has a row, which says what the code does."""

import inspect
import re
from collections.abc import Callable
from typing import Any, Unpack, get_args, get_origin, get_overloads, get_type_hints

import boto3
import pytest
from boto3.dynamodb.table import BatchWriter, TableResource
from keyhop.sharding.io.boto3_words import ELSEWHERE, REFUSED, BatchGot, TableBatch
from keyhop.sharding.table import ShardedTable

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "sharding-boto3.md").read_text()
CALLS = ("put_item", "get_item", "update_item", "delete_item", "query", "batch_get_item")


@pytest.fixture(scope="module")
def boto3s() -> set[tuple[str, str]]:
    """boto3's calls and parameters."""
    resource = boto3.resource("dynamodb", region_name="us-east-1")
    model = resource.meta.client.meta.service_model
    found = set()
    for call in CALLS:
        operation = "".join(map(str.capitalize, call.split("_")))
        members = model.operation_model(operation).input_shape.members
        found |= {(call, name) for name in members if name != "TableName"}
    found |= {("RequestItems", name) for name in model.shape_for("KeysAndAttributes").members}
    return found | {("batch_writer", name) for name in _named(TableResource.batch_writer)}


def _named(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"}


def taken(call: str) -> set[str]:
    """What the code takes, by its signatures."""
    if call == "RequestItems":
        return set(BatchGot.__annotations__)
    function = getattr(ShardedTable, call)
    found: set[str] = set()
    for one in get_overloads(function) or [function]:
        found |= _named(one)
        for hint in get_type_hints(one).values():
            if get_origin(hint) is Unpack:
                found |= set(get_args(hint)[0].__annotations__)
    return found


def rows() -> dict[tuple[str, str], str]:
    """What the page says is here, by call and parameter."""
    found = {}
    table = PAGE.partition("## Parameters")[2].partition("\n## ")[0]
    for line in re.findall(r"^\| `.*\|$", table, re.MULTILINE):
        calls, parameter, _, here = [cell.strip() for cell in line.strip("|").split(" | ")]
        for call in re.findall(r"`(\w+)`", calls):
            name = parameter.strip("`")
            assert (call, name) not in found
            found[call, name] = here
    return found


def test_each_parameter_of_boto3_has_a_row(boto3s: set[tuple[str, str]]) -> None:
    assert rows().keys() == boto3s


def test_a_row_says_what_the_code_does() -> None:
    for (call, name), here in rows().items():
        assert (name in taken(call)) == (not here.startswith("refused")), (call, name)
        assert (name in REFUSED) == here.startswith("refused"), (call, name)


def test_a_batch_takes_what_boto3s_takes() -> None:
    for call in ("put_item", "delete_item"):
        assert _named(getattr(TableBatch, call)) == _named(getattr(BatchWriter, call))


def test_what_cannot_be_is_told() -> None:
    told = PAGE.partition("## What cannot be")[2]
    assert all(f"`{name}`" in told for name in ELSEWHERE)
