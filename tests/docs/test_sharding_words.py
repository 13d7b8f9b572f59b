"""Tests that sharding-boto3.md has a correct row for each parameter of boto3."""

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
def boto3_parameters() -> set[tuple[str, str]]:
    """The calls of boto3 and their parameters."""
    resource = boto3.resource("dynamodb", region_name="us-east-1")
    model = resource.meta.client.meta.service_model
    parameters = set()
    for call in CALLS:
        operation = "".join(map(str.capitalize, call.split("_")))
        members = model.operation_model(operation).input_shape.members
        parameters |= {(call, name) for name in members if name != "TableName"}
    parameters |= {("RequestItems", name) for name in model.shape_for("KeysAndAttributes").members}
    return parameters | {("batch_writer", name) for name in _names(TableResource.batch_writer)}


def _names(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"}


def accepted(call: str) -> set[str]:
    """Return the parameters that a method of the library accepts."""
    if call == "RequestItems":
        return set(BatchGot.__annotations__)
    function = getattr(ShardedTable, call)
    names: set[str] = set()
    for overload in get_overloads(function) or [function]:
        names |= _names(overload)
        for hint in get_type_hints(overload).values():
            if get_origin(hint) is Unpack:
                names |= set(get_args(hint)[0].__annotations__)
    return names


def rows() -> dict[tuple[str, str], str]:
    """Return the last column of the page's table, by call and parameter."""
    texts = {}
    table = PAGE.partition("## Parameters")[2].partition("\n## ")[0]
    for line in re.findall(r"^\| `.*\|$", table, re.MULTILINE):
        calls, parameter, _, text = [cell.strip() for cell in line.strip("|").split(" | ")]
        for call in re.findall(r"`(\w+)`", calls):
            name = parameter.strip("`")
            assert (call, name) not in texts
            texts[call, name] = text
    return texts


def test_each_parameter_of_boto3_has_a_row(boto3_parameters: set[tuple[str, str]]) -> None:
    assert rows().keys() == boto3_parameters


def test_a_row_describes_the_behaviour_of_the_code() -> None:
    for (call, name), text in rows().items():
        assert (name in accepted(call)) == (not text.startswith("refused")), (call, name)
        assert (name in REFUSED) == text.startswith("refused"), (call, name)


def test_a_batch_accepts_the_parameters_of_boto3() -> None:
    for call in ("put_item", "delete_item"):
        assert _names(getattr(TableBatch, call)) == _names(getattr(BatchWriter, call))


def test_the_page_lists_what_is_not_possible() -> None:
    section = PAGE.partition("## What cannot be")[2]
    assert all(f"`{name}`" in section for name in ELSEWHERE)
