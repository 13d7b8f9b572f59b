"""The simulated DynamoDB answers as DynamoDB Local does, request by request.

The simulator of sharded tables, the chaos tests of the re-key and the tests on the stand-in are
only as good as testing/simulation. Here it and DynamoDB Local get the same requests: generated
ones, invalid ones, and those that the simulator and the chaos tests really send. Answers, errors
and stream records are compared whole. These differences are accepted:

- The message of a ValidationException is not compared: no code of Keyhop reads it, and DynamoDB
  Local words many of them in another way than the service.
- DynamoDB Local reports 0 consumed units for a Query or a Scan that reads nothing. The service, and
  so the simulation, reports half a unit, or one if the read is consistent
  (docs/internals/claims.md).
- DynamoDB Local charges nothing for a key of a BatchGetItem that has no item. The service charges
  as for an item of up to 4 KB (Developer Guide, "Capacity unit consumption for reads"). So the
  units are compared if all keys have items.
- DynamoDB Local charges more units than the service for some writes in batches and transactions:
  for deletions of absent items, and for some items that replace others. The service charges a unit
  for each KB, and two in a transaction (Developer Guide, "Capacity unit consumption for writes").
  So only the units of new items are compared, in a separate test.
- DynamoDB Local reports the units of some deletions that do not ask for them. The service does not.
- If the condition of an update in a transaction holds, but the update does not fit the item, the
  transaction is canceled with the reason ValidationError (API Reference, TransactWriteItems).
  DynamoDB Local refuses the request with a ValidationException. Both count as a
  ValidationException here.
- DynamoDB Local ends the message of a cancellation reason with a full stop if it shows no item.
- DynamoDB Local stores the numbers of updates, batches and transactions, and those in maps and
  lists, as they are written, for example "1.0". The service stores "1" (Developer Guide, "Supported
  data types"), as DynamoDB Local does with the attributes of PutItem. So these requests contain
  normalized numbers only. The keys in DynamoDB Local's stream records are not normalized either.
- DynamoDB Local evaluates the conditions of a transaction before it refuses two parts for one item.
- The order of partition keys in a Scan depends on the hash, and differs between the databases.
- DynamoDB Local deals the items of one collection of a global index to several segments, and it
  lets an update give an index's key attribute another type. The service does neither.
- The order of items with equal keys in an index differs between the databases.
- DynamoDB Local may answer a Scan that starts after a key of another segment. The simulation
  refuses it.
- The units of writes to a table with indexes are not simulated.
- For a nested path, UPDATED_OLD and UPDATED_NEW of DynamoDB Local show the whole attribute, and the
  service shows the updated part alone. The simulation refuses such a request.
"""

import json
import random
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.databases import Database
from testing.marks import prove, prove_long
from testing.servers import LOCAL_CREDENTIALS
from testing.sharding_simulator import run as sharding_run
from testing.sharding_simulator import world as sharding_world
from testing.simulation.schedule import Process, Schedule
from testing.simulation.service import Service
from testing.simulation.streams import Streams, records
from testing.simulation.tables import HASHES, Table, keyed
from testing.simulation.values import NotSimulated
from tests.unit.rekey import chaos_world
from tests.unit.rekey.chaos import Chaos

Request = tuple[str, dict[str, Any]]
"""An operation, and its parameters."""

SCHEMAS: dict[str, dict[str, str]] = {
    "plain": {"pk": "S"},
    "sorted": {"pk": "S", "sk": "S"},
    "numbered": {"pk": "S", "sk": "N"},
    "binary": {"pk": "B", "sk": "B"},
    "indexed": {"pk": "S", "sk": "S"},
}
"""The tables of the generated requests: the names and types of their keys."""

INDEXES: dict[str, dict[str, str]] = {
    "by_n": {"n": "N"},
    "by_b_and_n": {"b": "S", "n": "N"},
    "local": {"pk": "S", "n": "N"},
}
"""The indexes of the table "indexed": the names and types of their keys."""

PARTITIONS: dict[str, list[Any]] = {
    "S": ["a", "b", "ä"],
    "B": [b"a", b"\xff"],
    "N": ["1", "2", "10"],
}
SORTS: dict[str, list[Any]] = {
    "S": ["1", "10", "2", "\U0001f600", "\uffff"],
    "N": ["-1", "1.0", "2", "10", "1E2"],
    "B": [b"\x00", b"\x00\x01", b"\x7f", b"\x80"],
}
"""Sort keys whose order differs from that of their representation in Python or in JSON."""
EXAMPLES = {"S": "a", "N": "1", "B": b"a"}

# --- both databases ---


def table_request(schema: Mapping[str, str], indexes: Mapping[str, Mapping[str, str]]) -> Any:
    """Return the parameters of CreateTable for one of the tables of the generated requests."""
    types = {**schema, **{name: type_ for key in indexes.values() for name, type_ in key.items()}}
    request = {**keyed(schema), "AttributeDefinitions": keyed(types)["AttributeDefinitions"]}
    for name, key in indexes.items():
        include = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a"]}
        projections = {"by_n": {"ProjectionType": "ALL"}, "local": include}
        projection = projections.get(name, {"ProjectionType": "KEYS_ONLY"})
        index = {**keyed(key), "IndexName": name, "Projection": projection}
        del index["AttributeDefinitions"]
        kind = "LocalSecondaryIndexes" if name == "local" else "GlobalSecondaryIndexes"
        request[kind] = [*request.get(kind, ()), index]
    return request


class Both:
    """DynamoDB Local and the simulated service, with the same tables.

    Attributes:
        names: The names of the tables in both databases, by the names in requests.
        used: The tables that a request has named since the last clear().
    """

    def __init__(self, database: Database, schemas: Mapping[str, Mapping[str, str]]) -> None:
        self.client = database.client
        self.names = {name: f"{name}-{uuid.uuid4().hex}" for name in schemas}
        requests = {
            self.names[name]: table_request(schema, INDEXES if name == "indexed" else {})
            for name, schema in schemas.items()
        }
        self.used = {*requests}
        self.service = Service({name: Table(table, shards=3) for name, table in requests.items()})
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        for name, request in requests.items():
            self.client.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                StreamSpecification=stream,
                **request,
            )
        self.real_streams = boto3.client(
            "dynamodbstreams", endpoint_url=database.url, **LOCAL_CREDENTIALS
        )
        for name, schema in schemas.items():
            # DynamoDB Local numbers the records of all streams together, and refuses an iterator
            # that was made before a stream's first record once another stream has had records.
            first = {key: {type_: EXAMPLES[type_]} for key, type_ in schema.items()}
            self.client.put_item(TableName=self.names[name], Item=first)
        self._iterators = {name: self._first_iterator(name) for name in self.names.values()}
        self._read = {(name, shard): 0 for name in self.names.values() for shard in range(3)}
        self.clear()

    def send(self, operation: str, request: Mapping[str, Any]) -> Any:
        """Send a request to both databases. Raise if their answers differ, else return one."""
        request = self.renamed(request)
        simulated = outcome(lambda: self.service.answer(operation, request))
        real = outcome(lambda: getattr(self.client, operation)(**request))
        expected = comparable(operation, request, real, of_local=True)
        assert comparable(operation, request, simulated) == expected, (operation, request)
        return simulated

    def renamed(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with the names of the tables in the databases."""
        request = renamed(request, self.names)
        self.used |= {name for name in self.names.values() if name in str(request)}
        return dict(request)

    def scan_all(self, table: str) -> list[Any]:
        """Return all items of a table, which must be the same in both databases."""
        return list(self.send("scan", {"TableName": table, "ConsistentRead": True})["Items"])

    def check_streams(self) -> None:
        """Raise if the two databases have written different stream records since the last call."""
        for name, table in self.service.tables.items():
            simulated = self._new_records(name, table)
            real = self._new_real_records(name, sum(map(len, simulated.values())))
            assert simulated == real

    def clear(self) -> None:
        """Delete all items, and forget their stream records, in the tables that requests named."""
        for name in self.used:
            table = self.service.tables[name]
            for item in self.client.scan(TableName=name, ConsistentRead=True)["Items"]:
                self.client.delete_item(TableName=name, Key=table.base.key_of(item))
            for item in table.items:
                table.delete(item)
            self._new_records(name, table)
            self._new_real_records(name, 0)
        self.used.clear()

    def _new_records(self, name: str, table: Table) -> dict[str, list[Any]]:
        collected = []
        for shard, written in enumerate(table.shards):
            new = records(table, name, shard, self._read[name, shard], len(written))
            self._read[name, shard] += len(new)
            collected += new
        return by_item(collected)

    def _new_real_records(self, name: str, expected: int) -> dict[str, list[Any]]:
        collected: list[Any] = []
        for attempt in range(100):
            page = self.real_streams.get_records(ShardIterator=self._iterators[name])
            self._iterators[name] = page["NextShardIterator"]
            collected += plain_numbers(page["Records"])
            if not page["Records"] and (len(collected) >= expected or attempt == 99):
                break
        return by_item(collected)

    def _first_iterator(self, name: str) -> str:
        arn = self.client.describe_table(TableName=name)["Table"]["LatestStreamArn"]
        (shard,) = self.real_streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        first = self.real_streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )
        return str(first["ShardIterator"])


def renamed(request: Any, names: Mapping[str, str]) -> Any:
    """Return a request with other names of tables."""
    if isinstance(request, list):
        return [renamed(part, names) for part in request]
    if not isinstance(request, Mapping):
        return request
    return {
        name: {names.get(table, table): part for table, part in value.items()}
        if name == "RequestItems"
        else names.get(value, value)
        if name == "TableName"
        else renamed(value, names)
        if name in ("TransactItems", "Put", "Update", "Delete", "ConditionCheck")
        else value
        for name, value in request.items()
    }


def outcome(send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return an answer, or the body of an error response."""
    try:
        answer = dict(send())
    except ClientError as error:
        answer = dict(error.response)
    answer.pop("ResponseMetadata", None)
    return answer


ERRORS_WITH_MESSAGES = ("ConditionalCheckFailedException", "TransactionCanceledException")
"""The errors whose messages are compared."""


def comparable(
    operation: str, request: Mapping[str, Any], answer: dict[str, Any], *, of_local: bool = False
) -> Any:
    """Return an answer without the accepted differences (see the docstring of this module)."""
    answer = plain_numbers(answer) if of_local else dict(answer)
    if "Error" in answer:
        return comparable_error(answer)
    if operation == "describe_table":
        table = answer["Table"]
        described = {name: table[name] for name in ("TableName", "KeySchema", "TableStatus")}
        definitions = table["AttributeDefinitions"]
        types = {each["AttributeName"]: each["AttributeType"] for each in definitions}
        return described | {"types": types, "has a stream": "LatestStreamArn" in table}
    is_empty = operation in ("query", "scan") and not answer["ScannedCount"]
    if of_local and is_empty and "ConsumedCapacity" in answer:
        assert answer["ConsumedCapacity"]["CapacityUnits"] == 0.0
        units = 1.0 if request.get("ConsistentRead") else 0.5
        answer["ConsumedCapacity"] = {**answer["ConsumedCapacity"], "CapacityUnits": units}
    if of_local and operation == "delete_item" and "ReturnConsumedCapacity" not in request:
        answer.pop("ConsumedCapacity", None)
    if operation == "batch_get_item" and is_incomplete(request, answer):
        answer.pop("ConsumedCapacity", None)
    if isinstance(capacities := answer.get("ConsumedCapacity"), list):
        if operation in ("batch_write_item", "transact_write_items"):
            capacities = [dict.fromkeys(each, each["TableName"]) for each in capacities]
        answer["ConsumedCapacity"] = sorted(capacities, key=repr_of)
    if (operation == "scan" and not request.get("Limit")) or "IndexName" in request:
        answer["Items"] = sorted(answer.get("Items", ()), key=repr_of)
    return without_order(answer)


def is_incomplete(request: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Return whether a BatchGetItem found no items for some of its keys."""
    requested = {table: len(part["Keys"]) for table, part in request["RequestItems"].items()}
    return requested != {table: len(items) for table, items in answer["Responses"].items()}


def comparable_error(answer: dict[str, Any]) -> Any:
    code = answer["Error"]["Code"]
    reasons = [
        {**reason, "Message": reason["Message"].rstrip(".")} if "Message" in reason else reason
        for reason in answer.get("CancellationReasons", ())
    ]
    if any(reason["Code"] == "ValidationError" for reason in reasons):
        code, reasons = "ValidationException", []
    return {
        "Code": code,
        "Message": answer["Error"]["Message"] if code in ERRORS_WITH_MESSAGES else None,
        "CancellationReasons": without_order(reasons),
        "Item": without_order(answer.get("Item")),
    }


def without_order(value: Any) -> Any:
    """Return a value with its sets, and the items of a batch, sorted."""
    if isinstance(value, Mapping):
        return {
            name: sorted(part)
            if name in ("SS", "NS", "BS")
            else {table: sorted(items, key=repr_of) for table, items in part.items()}
            if name == "Responses"
            else without_order(part)
            for name, part in value.items()
        }
    return [without_order(part) for part in value] if isinstance(value, list) else value


def repr_of(item: Mapping[str, Any]) -> str:
    return json.dumps(without_order(item), sort_keys=True, default=repr)


def by_item(stream_records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the changes in stream records, in order, by the key of the item."""
    changes = defaultdict(list)
    for record in stream_records:
        change = record["dynamodb"]
        images = {name: without_order(change.get(name)) for name in ("OldImage", "NewImage")}
        changes[repr_of(plain_numbers(change["Keys"]))].append((record["eventName"], images))
    return dict(changes)


# --- generated requests ---


class Words:
    """The placeholders in the expressions of one request."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def name(self, attribute: str) -> str:
        if attribute not in RESERVED and self.draw(st.booleans()):
            return attribute
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = attribute
        return placeholder

    def path(self, names: st.SearchStrategy[str]) -> str:
        """Return a path of one to three attribute names."""
        first = self.draw(names)
        depths = {"pk": [0], "sk": [0], "m": [0, 0, 1, 1, 1, 2]}.get(first, [0] * 15 + [1])
        depth = self.draw(st.sampled_from(depths))
        return ".".join(map(self.name, [first, *(self.draw(ATTRIBUTES) for _ in range(depth))]))

    def value(self, values: st.SearchStrategy[Any]) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = plain_numbers(self.draw(values))
        return placeholder

    def parameters(self) -> dict[str, Any]:
        names = {"ExpressionAttributeNames": self.names} if self.names else {}
        values = {"ExpressionAttributeValues": self.values} if self.values else {}
        return names | values


RESERVED = ("at", "Name")
ATTRIBUTES = st.sampled_from(["a", "b", "m", "m", "n", "n", "at", "Name"])
OF_KEYS = st.sampled_from(["pk", "sk"])
NUMBERS = st.sampled_from(
    ["0", "1", "1.0", "-1", "-0", "2", "10", "1E2", "0.10", "1e-7", "9" * 38, "5" * 38]
).map(lambda text: {"N": text})
TEXTS = st.sampled_from(["", "1", "10", "2", "\uffff", "\U0001f600"]).map(lambda text: {"S": text})
SIMPLE = st.one_of(
    NUMBERS,
    NUMBERS,
    TEXTS,
    st.sampled_from([b"", b"1", b"\xff"]).map(lambda content: {"B": content}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.permutations(["b", "a", "c"]).map(lambda members: {"SS": members[:2]}),
    st.permutations(["1", "2.0", "10"]).map(lambda members: {"NS": members[:2]}),
    st.just({"S": "x" * 1_500}),
)
MAPS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.dictionaries(ATTRIBUTES, inner, max_size=2).map(lambda content: {"M": content}),
        st.lists(inner, max_size=2).map(lambda content: {"L": content}),
    ),
    max_leaves=3,
)
VALUES = st.one_of(SIMPLE, MAPS)
MEMBERS = st.dictionaries(
    st.sampled_from(["a", "b", "n"]), st.one_of(NUMBERS, MAPS), max_size=2
).map(lambda content: {"M": content})


@st.composite
def keys(draw: st.DrawFn, table: str, partition: Any = None) -> dict[str, Any]:
    name, *sort = SCHEMAS[table].items()
    first = partition or {name[1]: draw(st.sampled_from(PARTITIONS[name[1]]))}
    return {name[0]: first} | {
        name: {type_: draw(st.sampled_from(SORTS[type_]))} for name, type_ in sort
    }


@st.composite
def items(draw: st.DrawFn, table: str) -> dict[str, Any]:
    more = draw(st.dictionaries(ATTRIBUTES, VALUES, max_size=3))
    for name, values in {"n": NUMBERS, "m": MEMBERS}.items():
        more |= {name: draw(values)} if draw(st.booleans()) else {}
    if table == "indexed" and draw(st.integers(0, 3)):
        more |= {"b": {"S": draw(st.sampled_from(PARTITIONS["S"]))}}
    more = {
        name: plain_numbers(value) if value.keys() & {"M", "L"} else value
        for name, value in more.items()
    }
    return {**more, **draw(keys(table))}


def condition(words: Words, levels: int = 2) -> str:
    """Return a condition, which the service may refuse."""
    draw = words.draw
    any_name = st.one_of(ATTRIBUTES, ATTRIBUTES, OF_KEYS)
    kinds = ["exists", "exists", "compared", "compared", "between"]
    kind = draw(st.sampled_from(kinds + ["and", "or", "not", "brackets"] * (levels > 0)))
    match kind:
        case "exists":
            function = draw(st.sampled_from(["attribute_exists", "attribute_not_exists"]))
            return f"{function}({words.path(any_name)})"
        case "compared":
            operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
            sides = [words.path(any_name), words.value(VALUES)]
            if draw(st.integers(0, 5)) == 0:
                sides[draw(st.integers(0, 1))] = words.path(any_name)
            if draw(st.integers(0, 5)) == 0:
                sides.reverse()
            return f"{sides[0]} {operator} {sides[1]}"
        case "between":
            bounds = [words.value(st.one_of(NUMBERS, NUMBERS, TEXTS)) for _ in range(2)]
            return f"{words.path(any_name)} BETWEEN {bounds[0]} AND {bounds[1]}"
        case "not":
            return f"NOT {condition(words, levels - 1)}"
        case "brackets":
            return f"({condition(words, levels - 1)})"
    return f" {kind.upper()} ".join(condition(words, levels - 1) for _ in range(2))


def operand(words: Words, levels: int = 1) -> str:
    draw = words.draw
    match draw(st.sampled_from(["value"] * 4 + ["path"] + ["default"] * (3 * levels))):
        case "path":
            return words.path(ATTRIBUTES)
        case "default":
            path = words.path(ATTRIBUTES)
            return f"if_not_exists({path}, {operand(words, levels - 1)})"
    return words.value(st.one_of(*[NUMBERS] * 4, VALUES))


def update(words: Words, table: str) -> str:
    """Return an update expression, which the service may refuse."""
    draw = words.draw
    # DynamoDB Local accepts an update of an index's key to another type.
    changed = ["a", "m", "at"] if table == "indexed" else ["a", "b", "m", "m", "n", "n", "at"]
    names = st.sampled_from(changed * 6 + ["pk"])
    sections = draw(
        st.lists(
            st.sampled_from(["SET", "SET", "ADD", "REMOVE"]), min_size=1, max_size=3, unique=True
        )
    )
    text = []
    for section in sections:
        actions = []
        for _ in range(draw(st.sampled_from([1, 1, 2]))):
            path = words.path(names)
            if section == "SET":
                sign = draw(st.sampled_from(["", "", "", " + ", " - "]))
                path += f" = {operand(words)}" + (f"{sign}{operand(words)}" if sign else "")
            elif section == "ADD":
                path += f" {words.value(NUMBERS)}"
            actions.append(path)
        text.append(f"{section} {', '.join(actions)}")
    return " ".join(text)


@st.composite
def writes(draw: st.DrawFn, operation: str, table: str, *, in_transaction: bool = False) -> Any:
    """Draw the parameters of a write with and without a condition."""
    words = Words(draw)
    request: dict[str, Any] = {"TableName": table}
    if operation == "put_item":
        request["Item"] = draw(items(table))
    else:
        request["Key"] = draw(keys(table))
    if operation == "update_item" and draw(st.integers(0, 9)):
        request["UpdateExpression"] = update(words, table)
    if operation == "condition_check" or draw(st.booleans()):
        request["ConditionExpression"] = condition(words)
        if draw(st.booleans()):
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if not in_transaction:
        returns = [None, "NONE", "ALL_OLD"]
        is_nested = "." in request.get("UpdateExpression", ".")
        if operation == "update_item":
            returns += ["ALL_NEW"] + ["UPDATED_OLD", "UPDATED_NEW"] * (2 * (not is_nested))
        request |= {"ReturnValues": value} if (value := draw(st.sampled_from(returns))) else {}
        request |= draw(capacity(table))
    return request | words.parameters()


CAPACITY = st.sampled_from([{}, {"ReturnConsumedCapacity": "TOTAL"}])


def capacity(*tables: str) -> st.SearchStrategy[dict[str, Any]]:
    """Draw whether a write asks for its units. The units of indexes are not simulated."""
    return st.just({}) if "indexed" in tables else CAPACITY


@st.composite
def sometimes_twice(
    draw: st.DrawFn, values: st.SearchStrategy[Any], key: Callable[[Any], Any] = repr
) -> list[Any]:
    """Draw a list of different values, and sometimes one of them again."""
    chosen = draw(st.lists(values, min_size=1, max_size=4, unique_by=key))
    return chosen + chosen[:1] * (draw(st.integers(0, 15)) == 15)


def key_repr(table: str) -> Callable[[Any], str]:
    """Return a function that returns the key of the item that a part of a batch writes."""

    def key(part: dict[str, Any]) -> str:
        (content,) = part.values()
        (item,) = content.values()
        return repr([item[name] for name in SCHEMAS[table]])

    return key


@st.composite
def projections(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        return {}
    words = Words(draw)
    names = draw(sometimes_twice(st.sampled_from(["pk", "n", "m", "at"])))
    text = ", ".join(words.name(name) for name in names)
    return {"ProjectionExpression": text, **words.parameters()}


@st.composite
def pages(draw: st.DrawFn, operation: str, table: str) -> dict[str, Any]:
    """Draw the parameters of a Query or a Scan of one page.

    A page of an index has no limit, as the databases order items with equal keys differently.
    """
    index = draw(st.sampled_from([None, *INDEXES])) if table == "indexed" else None
    request: dict[str, Any] = {"TableName": table, **draw(CAPACITY)}
    request |= {"IndexName": index} if index else draw(projections())
    if "ProjectionExpression" in request:
        select = st.sampled_from([None, "SPECIFIC_ATTRIBUTES"])
    elif index:
        select = st.sampled_from([None, "COUNT", "ALL_PROJECTED_ATTRIBUTES"])
    else:
        select = st.sampled_from([None, "COUNT", "ALL_ATTRIBUTES"])
    limits = st.sampled_from([None, 1, 2, 3, 100])
    for name, values in {
        "Select": select,
        "ConsistentRead": st.sampled_from([None, True, False]),
        **({"Limit": limits} if operation == "query" and not index else {}),
    }.items():
        request |= {name: value} if (value := draw(values)) is not None else {}
    if operation == "query":
        (name, type_), *sort = (INDEXES[index] if index else SCHEMAS[table]).items()
        partition = {type_: draw(st.sampled_from(PARTITIONS[type_]))}
        words = Words(draw)
        text = f"{words.name(name)} = {words.value(st.just(partition))}"
        if sort and draw(st.booleans()):
            text = f"{text} AND {sort_condition(words, *sort[0])}"
        if not index and draw(st.booleans()):
            request["ExclusiveStartKey"] = draw(keys(table, draw(st.just(partition))))
        request |= draw(st.sampled_from([{}, {"ScanIndexForward": False}]))
        for parameter, placeholders in words.parameters().items():
            prefixed = {f"{placeholder}k": value for placeholder, value in placeholders.items()}
            request[parameter] = {**request.get(parameter, {}), **prefixed}
        request["KeyConditionExpression"] = re.sub(r"([#:]\w+)", r"\1k", text)
    return request


def sort_condition(words: Words, name: str, type_: str) -> str:
    values = st.sampled_from(SORTS[type_]).map(lambda content: {type_: content})
    operator = words.draw(st.sampled_from(["=", "<", "<=", ">", ">=", "BETWEEN"]))
    text = f"{words.name(name)} {operator} {words.value(values)}"
    return f"{text} AND {words.value(values)}" if operator == "BETWEEN" else text


KINDS = {
    "Put": "put_item",
    "Update": "update_item",
    "Delete": "delete_item",
    "ConditionCheck": "condition_check",
}


@st.composite
def transactions(draw: st.DrawFn) -> dict[str, Any]:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["Put", "Put", "Update", "Delete", "ConditionCheck"]))
        table = draw(TABLES)
        parts.append({kind: draw(writes(KINDS[kind], table, in_transaction=True))})
    unique = {repr(item_of(part)): part for part in parts}
    tables = [item_of(part)[0] for part in unique.values()]
    return {"TransactItems": plain_numbers(list(unique.values())), **draw(capacity(*tables))}


def item_of(part: Mapping[str, Any]) -> Any:
    """Return the table and the key of a part of a transaction."""
    ((_, write),) = part.items()
    key = plain_numbers(write.get("Key") or write["Item"])
    return write["TableName"], [key[name] for name in SCHEMAS[write["TableName"]]]


def plain_numbers(value: Any) -> Any:
    """Return typed values whose numbers are normalized as the service does."""
    if isinstance(value, list):
        return [plain_numbers(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: plain_number(part)
        if name == "N"
        else [plain_number(member) for member in part]
        if name == "NS"
        else plain_numbers(part)
        for name, part in value.items()
    }


def plain_number(text: str) -> str:
    digits = format(Decimal(text), "f") if Decimal(text) else "0"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


TABLES = st.sampled_from(list(SCHEMAS))


@st.composite
def batches(draw: st.DrawFn, operation: str) -> dict[str, Any]:
    """Draw a batch for one or two tables, which may contain a key twice."""
    parts: dict[str, Any] = {}
    for table in draw(st.lists(TABLES, min_size=1, max_size=2, unique=True)):
        if operation == "batch_get_item":
            requested = draw(sometimes_twice(keys(table)))
            consistent = draw(st.sampled_from([{}, {"ConsistentRead": True}]))
            parts[table] = {"Keys": requested, **consistent, **draw(projections())}
        else:
            puts = items(table).map(lambda item: {"PutRequest": {"Item": item}})
            deletes = keys(table).map(lambda key: {"DeleteRequest": {"Key": key}})
            parts[table] = draw(sometimes_twice(st.one_of(puts, puts, deletes), key_repr(table)))
    units = CAPACITY if operation == "batch_get_item" else capacity(*parts)
    return {"RequestItems": plain_numbers(parts), **draw(units)}


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Draw any request that the simulation supports."""
    single = ["put_item", "put_item", "update_item", "update_item", "update_item", "delete_item"]
    reads = ["get_item", "query", "query", "scan", "batch_get_item"]
    groups = ["batch_write_item", "transact_write_items", "transact_write_items", "again"]
    operation = draw(st.sampled_from(single + reads + groups))
    if operation in single:
        return operation, draw(writes(operation, draw(TABLES)))
    if operation == "get_item":
        table = draw(TABLES)
        key = {"TableName": table, "Key": draw(keys(table))}
        consistent = draw(st.sampled_from([{}, {"ConsistentRead": True}]))
        return operation, {**key, **consistent, **draw(CAPACITY), **draw(projections())}
    if operation in ("query", "scan"):
        return operation, draw(pages(operation, draw(TABLES)))
    if operation == "transact_write_items":
        return operation, draw(transactions())
    if operation == "again":  # with a token of a transaction that may have been done
        token = draw(st.sampled_from(["first", "second"]))
        return "transact_write_items", {**draw(transactions()), "ClientRequestToken": token}
    return operation, draw(batches(operation))


@pytest.fixture(scope="module")
def both(dynamodb_local_url: str) -> Both:
    return Both(Database("dynamodb_local", dynamodb_local_url), SCHEMAS)


def check(both: Both, request_list: Sequence[Request]) -> None:
    """Send requests to both databases, each transaction with a token twice."""
    both.clear()
    example = uuid.uuid4().hex[:8]
    for operation, request in request_list:
        token = request.get("ClientRequestToken")
        if token is None:
            both.send(operation, request)
            continue
        request = {**request, "ClientRequestToken": f"{token} {example}"}
        both.send(operation, request)
        both.send(operation, request)
    for table in SCHEMAS:
        both.scan_all(table)
    both.check_streams()


SENT = st.lists(requests(), min_size=8, max_size=24)


@pytest.mark.prove
@pytest.mark.timeout(1_800)
@settings(max_examples=150)
@given(sent=SENT)
def test_generated_requests_are_answered_alike(both: Both, sent: list[Request]) -> None:
    check(both, sent)


@pytest.mark.prove_long
@pytest.mark.timeout(3_600)
@settings(max_examples=5_000)
@given(sent=SENT)
def test_thousands_of_requests_are_answered_alike(both: Both, sent: list[Request]) -> None:
    check(both, sent)


# --- invalid requests, and requests that are not simulated ---

A = {"pk": {"S": "a"}, "sk": {"S": "1"}}
ONE, TWO = {"N": "1"}, {"N": "2"}
CONTENT = {"n": ONE, "m": {"M": {"x": ONE}}, "s": {"SS": ["a"]}, "t": {"S": "t"}}


def updating(expression: str, **values: Any) -> dict[str, Any]:
    """Return the parameters of an update of item A."""
    placeholders = {f":{name}": value for name, value in values.items()}
    request = {"TableName": "sorted", "Key": A, "UpdateExpression": expression}
    return {**request, "ExpressionAttributeValues": placeholders} if placeholders else request


def putting(condition: str | None = None, item: Any = A, **values: Any) -> dict[str, Any]:
    placeholders = {f":{name}": value for name, value in values.items()}
    request: dict[str, Any] = {"TableName": "sorted", "Item": item}
    request |= {} if condition is None else {"ConditionExpression": condition}
    return {**request, "ExpressionAttributeValues": placeholders} if placeholders else request


def querying(condition: str, start: Any = None, **values: Any) -> dict[str, Any]:
    placeholders = {f":{name}": {"S": text} for name, text in values.items()}
    request: dict[str, Any] = {"TableName": "sorted", "KeyConditionExpression": condition}
    request |= {} if start is None else {"ExclusiveStartKey": start}
    return {**request, "ExpressionAttributeValues": placeholders} if placeholders else request


def transacting(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"TransactItems": list(parts), **more}


def getting(**keys: list[Any]) -> dict[str, Any]:
    """Return the parameters of BatchGetItem for these keys of each table."""
    return {"RequestItems": {table: {"Keys": table_keys} for table, table_keys in keys.items()}}


def puts(*items_: Any) -> list[Any]:
    return [{"PutRequest": {"Item": item}} for item in items_]


def numbered(count: int) -> list[Any]:
    """Return `count` keys of the table "plain"."""
    return [{"pk": {"S": str(number)}} for number in range(count)]


OTHER = {"pk": {"S": "a"}, "sk": {"S": "2"}}
IN_INDEX = {"TableName": "indexed", "IndexName": "local"}
INVALID: list[Request] = [
    # Keys
    ("get_item", {"TableName": "sorted", "Key": {"pk": {"S": "a"}}}),
    ("get_item", {"TableName": "sorted", "Key": {**A, "n": ONE}}),
    ("get_item", {"TableName": "sorted", "Key": {**A, "sk": ONE}}),
    ("delete_item", {"TableName": "sorted", "Key": {**A, "sk": {"S": ""}}}),
    ("put_item", putting(item={"pk": {"S": "a"}})),
    ("put_item", putting(item={**A, "pk": {"N": "1"}})),
    ("put_item", putting(item={**A, "pk": {"S": "x" * 2_049}})),
    # Values
    ("put_item", putting(item={**A, "n": {"N": "x"}})),
    ("put_item", putting(item={**A, "n": {"N": "1" * 39}})),
    ("put_item", putting(item={**A, "n": {"N": "1E126"}})),
    ("put_item", putting(item={**A, "n": {"N": "1E-131"}})),
    ("put_item", putting(item={**A, "n": {"SS": ["a", "a"]}})),
    ("put_item", putting(item={**A, "n": {"SS": []}})),
    ("put_item", putting(item={**A, "n": {"NULL": False}})),
    ("put_item", putting(item={**A, "t": {"S": "x" * 409_600}})),
    ("update_item", updating("SET t = :t", t={"S": "x" * 409_600})),
    ("update_item", updating("ADD n :n", n={"N": "1E60"})),
    ("update_item", updating("SET n = n - :n", n={"N": "0." + "0" * 38 + "1"})),
    # Expressions
    ("put_item", putting("")),
    ("put_item", putting("n")),
    ("put_item", putting("n = :n AND", n=ONE)),
    ("put_item", putting("(n = :n", n=ONE)),
    ("put_item", putting("n = :n)", n=ONE)),
    ("put_item", putting("((n = :n))", n=ONE)),
    ("put_item", putting("((n = :n) AND n = :n) AND ((n = :n))", n=ONE)),
    ("put_item", putting("no_function(n)")),
    ("put_item", putting("ATTRIBUTE_EXISTS(n)")),
    ("put_item", putting("attribute_exists(:n)", n=ONE)),
    ("put_item", putting("n = n")),
    ("put_item", putting("n BETWEEN :m AND :n", n=ONE, m=TWO)),
    ("put_item", putting("n BETWEEN :n AND :m", n=ONE, m={"S": "x"})),
    ("put_item", putting("n < :m", m={"BOOL": True})),
    ("put_item", putting("attribute_exists(pk) OR n < :m", m={"M": {}})),
    ("put_item", putting("pk.x = :n", n=ONE)),
    ("put_item", putting("at = :n", n=ONE)),
    ("put_item", putting("m.at = :n", n=ONE)),
    ("put_item", putting("n = :m")),
    ("put_item", putting("n = :n", n=ONE, m=ONE)),
    ("put_item", {**putting("#n = :n", n=ONE)}),
    ("put_item", {**putting("n = :n", n=ONE), "ExpressionAttributeNames": {"#n": "n"}}),
    ("put_item", {**putting("attribute_exists(n)"), "ExpressionAttributeValues": {}}),
    ("put_item", putting(n=ONE)),
    ("put_item", {**putting(), "ReturnValues": "ALL_NEW"}),
    ("put_item", {**putting(), "ReturnValues": "UPDATED_OLD"}),
    ("delete_item", {"TableName": "sorted", "Key": A, "ReturnValues": "ALL_NEW"}),
    # Updates
    ("update_item", updating("")),
    ("update_item", updating("SET")),
    ("update_item", updating("n = :n", n=ONE)),
    ("update_item", updating("SET n = :n SET t = :n", n=ONE)),
    ("update_item", updating("SET n = :n, n = :n", n=ONE)),
    ("update_item", updating("SET m = :n REMOVE m.x", n=ONE)),
    ("update_item", updating("SET m.x = :n, m.x.y = :n", n=ONE)),
    ("update_item", updating("SET pk = :n", n=ONE)),
    ("update_item", updating("REMOVE sk")),
    ("update_item", updating("SET n = absent")),
    ("update_item", updating("SET n = absent + :n", n=ONE)),
    ("update_item", updating("SET n = if_not_exists(absent, another)")),
    ("update_item", updating("SET n = IF_NOT_EXISTS(n, :n)", n=ONE)),
    ("update_item", updating("SET n = if_not_exists(:n, n)", n=ONE)),
    ("update_item", updating("SET n = :n + :n + :n", n=ONE)),
    ("update_item", updating("SET n = if_not_exists(n, :n + :n)", n=ONE)),
    ("update_item", updating("SET n = t + :n", n=ONE)),
    ("update_item", updating("SET n = n + :t", t={"S": "x"})),
    ("update_item", updating("SET n = if_not_exists(n, n)")),
    ("update_item", updating("SET n = if_not_exists(n, absent)")),
    ("update_item", updating("SET n = if_not_exists(n, if_not_exists(absent, more))")),
    ("update_item", updating("SET n = n + if_not_exists(absent, :t)", t={"S": "x"})),
    ("update_item", updating("SET absent.x = :n", n=ONE)),
    ("update_item", updating("SET n.x = :n", n=ONE)),
    ("update_item", updating("SET m.y.z = :n", n=ONE)),
    ("update_item", updating("ADD absent.x :n", n=ONE)),
    ("update_item", updating("REMOVE absent.x")),
    ("update_item", updating("REMOVE n.x")),
    ("update_item", updating("ADD t :n", n=ONE)),
    ("update_item", updating("ADD n :t", t={"S": "x"})),
    ("update_item", updating("ADD n n")),
    ("update_item", {**updating("SET n = :n", n=ONE), "ReturnValues": "BOTH"}),
    # Queries
    ("query", querying("sk = :s", s="1")),
    ("query", querying("pk > :p", p="a")),
    ("query", querying("pk = :p AND sk <> :s", p="a", s="1")),
    ("query", querying("pk = :p AND pk = :p", p="a")),
    ("query", querying("pk = :p AND sk > :s AND sk < :s", p="a", s="1")),
    ("query", querying("pk = :p AND n = :s", p="a", s="1")),
    ("query", querying("pk = :p OR sk = :s", p="a", s="1")),
    ("query", querying("pk = :p AND sk BETWEEN :s AND :t", p="a", s="2", t="1")),
    ("query", querying("pk = :p AND sk = :s", p="a", s="")),
    ("query", {**querying("pk = :p", p="a"), "ExpressionAttributeValues": {":p": ONE}}),
    ("query", {**querying("pk = :p", p="a"), "Limit": 0}),
    ("query", {**querying("pk = :p", p="a"), "Select": "SPECIFIC_ATTRIBUTES"}),
    ("query", {**querying("pk = :p", p="a"), "ProjectionExpression": "n", "Select": "COUNT"}),
    ("query", {**querying("pk = :p", p="a"), "ProjectionExpression": "n, n"}),
    ("query", {**querying("pk = :p", p="a"), "ProjectionExpression": "at"}),
    ("query", querying("pk = :p", {"pk": {"S": "a"}}, p="a")),
    ("query", querying("pk = :p", {**A, "pk": {"S": "b"}}, p="a")),
    *(
        ("query", querying(f"pk = :p AND sk {operator} :s", {**A, "sk": {"S": sk}}, p="a", s="2"))
        for operator, sk in zip(["<", "<=", "<=", ">", ">=", "="], "232211", strict=True)
    ),
    ("query", {**querying("pk = :p AND sk >= :s", A, p="a", s="1"), "ScanIndexForward": False}),
    ("query", {**querying("pk = :p", p="a"), "IndexName": "other"}),
    ("query", {**querying("pk = :p AND sk = :p", p="a"), **IN_INDEX}),
    ("query", {**querying("b = :p", A, p="a"), "TableName": "indexed", "IndexName": "by_b_and_n"}),
    ("scan", {"TableName": "indexed", "IndexName": "other"}),
    ("scan", {"TableName": "indexed", "IndexName": "by_n", "ConsistentRead": True}),
    ("scan", {"TableName": "indexed", "IndexName": "by_n", "ExclusiveStartKey": A}),
    ("put_item", {**putting(item={**A, "n": {"S": "1"}}), "TableName": "indexed"}),
    ("put_item", {**putting(item={**A, "b": {"S": ""}}), "TableName": "indexed"}),
    ("put_item", {**putting(item={**A, "b": {"S": "x" * 2_049}}), "TableName": "indexed"}),
    ("scan", {"TableName": "sorted", "Limit": 0}),
    ("scan", {"TableName": "sorted", "Segment": 0}),
    ("scan", {"TableName": "sorted", "TotalSegments": 2}),
    *(
        ("scan", {"TableName": "sorted", "Segment": segment, "TotalSegments": total})
        for segment, total in [(1, 1), (2, 2), (-1, 2), (0, 0), (0, 1_000_001)]
    ),
    ("scan", {"TableName": "sorted", "ExclusiveStartKey": {"pk": {"S": "a"}}}),
    # Batches
    ("batch_get_item", getting(sorted=[A, A])),
    ("batch_get_item", getting(sorted=[])),
    ("batch_get_item", getting(sorted=[A, {"pk": {"S": "a"}}])),
    ("batch_get_item", getting(plain=numbered(101))),
    *(
        ("batch_write_item", {"RequestItems": parts})
        for parts in [
            {"sorted": [*puts(A), {"DeleteRequest": {"Key": A}}]},
            {"sorted": []},
            {"plain": puts(*numbered(26))},
            {"sorted": puts(OTHER, {"pk": ONE})},
        ]
    ),
    # Transactions
    ("transact_write_items", transacting()),
    *(
        ("transact_write_items", transacting({"Put": putting(item=OTHER)}, part))
        for part in [
            {"Delete": {"TableName": "sorted", "Key": OTHER}},
            {"Put": putting(item={"pk": ONE})},
            {"Update": updating("SET n = absent")},
            {"Update": updating("SET absent.x = :n", n=ONE)},
            {"Update": updating("SET n = :m")},
        ]
    ),
]


@pytest.mark.prove
@pytest.mark.parametrize(("operation", "request_"), INVALID, ids=lambda part: str(part)[:90])
def test_what_the_service_refuses_is_refused_and_does_nothing(
    both: Both, operation: str, request_: dict[str, Any]
) -> None:
    both.clear()
    both.send("put_item", putting(item={**A, **CONTENT}))
    answer = both.send(operation, request_)
    codes = [reason["Code"] for reason in answer.get("CancellationReasons", ())]
    assert answer["Error"]["Code"] == "ValidationException" or codes[-1] == "ValidationError"
    assert both.scan_all("sorted") == [{**A, **CONTENT}]
    assert both.scan_all("plain") == []
    both.check_streams()


@pytest.mark.prove
@pytest.mark.parametrize("path", ["a.x", "b.x", "n.x", "pk.x", "sk.x"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_write_goes_into_a_key_attribute_of_the_table_or_an_index(
    both: Both, kind: str, path: str
) -> None:
    """DynamoDB Local refuses such a condition, also of an index, but not in a ConditionCheck."""
    part: dict[str, Any] = {"TableName": "indexed"}
    part |= {"ConditionExpression": f"attribute_exists({path})"}
    part |= {"Item": A} if kind == "Put" else {"Key": A}
    part |= {"UpdateExpression": "REMOVE t"} if kind == "Update" else {}
    answer = both.send("transact_write_items", transacting({kind: part}))
    is_refused = kind != "ConditionCheck" and path != "a.x"
    code = "ValidationException" if is_refused else "TransactionCanceledException"
    assert answer["Error"]["Code"] == code


@pytest.mark.prove
@pytest.mark.parametrize("condition", ["attribute_exists(t)", "attribute_not_exists(t)"])
@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize(
    "update",
    [
        "SET #path = :n",
        "REMOVE #path",
        "ADD #path :n",
        "SET t = #path",
        "SET t = #path + :n",
        "SET t = if_not_exists(#path, :n)",
    ],
)
@pytest.mark.parametrize("path", ["a.x", "b.x", "n.x", "pk.x", "sk.x"])
def test_an_update_into_a_key_attribute_is_refused_after_its_condition_held(
    both: Both, path: str, update: str, in_transaction: bool, condition: str
) -> None:
    both.clear()
    values = {"n": ONE} if ":n" in update else {}
    request = {**updating(update.replace("#path", path), **values), "TableName": "indexed"}
    request |= {"ConditionExpression": condition}
    if in_transaction:
        answer = both.send("transact_write_items", transacting({"Update": request}))
    else:
        answer = both.send("update_item", request)
    if condition == "attribute_exists(t)":
        assert answer["Error"]["Code"] in (
            "ConditionalCheckFailedException",
            "TransactionCanceledException",
        )


@pytest.mark.parametrize("operation", ["get_item", "describe_table"])
def test_there_is_no_other_table(both: Both, operation: str) -> None:
    request: dict[str, Any] = {"TableName": "nobodys"}
    request |= {"Key": A} if operation == "get_item" else {}
    answer = both.send(operation, request)
    assert answer["Error"]["Code"] == "ResourceNotFoundException"


@pytest.mark.parametrize("table", SCHEMAS)
def test_a_table_is_described(both: Both, table: str) -> None:
    both.send("describe_table", {"TableName": table})


NOT_SIMULATED: list[Request] = [
    ("transact_get_items", {"TransactItems": []}),
    ("execute_statement", {"Statement": ""}),
    ("put_item", {**putting(), "Expected": {}}),
    ("put_item", {**putting(), "ReturnConsumedCapacity": "INDEXES"}),
    ("put_item", {**putting(), "ReturnItemCollectionMetrics": "SIZE"}),
    ("put_item", putting("n[0] = :n", n=ONE)),
    ("put_item", putting("begins_with(t, :t)", t={"S": "x"})),
    ("put_item", putting("contains(t, :t)", t={"S": "x"})),
    ("put_item", putting("attribute_type(t, :t)", t={"S": "S"})),
    ("put_item", putting("size(t) > :n", n=ONE)),
    ("put_item", putting("n IN (:n)", n=ONE)),
    ("update_item", updating("SET l = list_append(l, :n)", n={"L": []})),
    ("update_item", updating("SET l[0] = :n", n=ONE)),
    ("update_item", updating("SET n = (:n)", n=ONE)),
    ("update_item", updating("ADD s :s", s={"SS": ["b"]})),
    ("update_item", updating("DELETE s :s", s={"SS": ["a"]})),
    ("update_item", {**updating("SET m.x = :n", n=ONE), "ReturnValues": "UPDATED_NEW"}),
    ("update_item", {**updating("REMOVE m.x"), "ReturnValues": "UPDATED_OLD"}),
    ("query", {**querying("pk = :p", p="a"), **IN_INDEX, "Select": "ALL_ATTRIBUTES"}),
    ("scan", {**IN_INDEX, "ProjectionExpression": "m"}),
    ("put_item", {**putting(), "TableName": "indexed", "ReturnConsumedCapacity": "TOTAL"}),
    ("query", {**querying("pk = :p", p="a"), "FilterExpression": "n = :p"}),
    ("query", {**querying("pk = :p", p="a"), "ProjectionExpression": "m.x"}),
    ("query", querying("begins_with(sk, :s) AND pk = :p", p="a", s="1")),
    ("query", querying(":p = pk", p="a")),
    ("query", querying("(pk = :p)", p="a")),
    ("scan", {"TableName": "sorted", "FilterExpression": "attribute_exists(n)"}),
    ("transact_write_items", transacting({"Put": {**putting(), "ReturnValues": "ALL_OLD"}})),
    ("batch_get_item", {"RequestItems": {"sorted": {"Keys": [A], "AttributesToGet": ["n"]}}}),
]


@pytest.mark.parametrize(("operation", "request_"), NOT_SIMULATED, ids=lambda part: str(part)[:90])
def test_what_is_not_simulated_is_never_answered(operation: str, request_: dict[str, Any]) -> None:
    service = Service(
        {
            "sorted": Table(table_request(SCHEMAS["sorted"], {})),
            "indexed": Table(table_request(SCHEMAS["indexed"], INDEXES)),
        }
    )
    service.tables["sorted"].put({**A, **CONTENT})
    with pytest.raises(NotSimulated):
        service.answer(operation, request_)


# --- what the generated requests leave out ---


def pages_of(answer: Callable[..., dict[str, Any]], request: Mapping[str, Any]) -> list[Any]:
    """Return all pages of a Query or a Scan, each of which starts where the previous one ended."""
    pages_, start = [], {}
    while True:
        pages_.append(answer({**request, **start}))
        if "LastEvaluatedKey" not in pages_[-1]:
            return pages_
        start = {"ExclusiveStartKey": pages_[-1]["LastEvaluatedKey"]}


def both_pages(both: Both, operation: str, request: Mapping[str, Any]) -> list[list[Any]]:
    """Return all pages of the simulation, and of DynamoDB Local."""
    request = both.renamed({"ReturnConsumedCapacity": "TOTAL", **request})
    send = getattr(both.client, operation)
    return [
        pages_of(partial(both.service.answer, operation), request),
        pages_of(lambda page_request: outcome(partial(send, **page_request)), request),
    ]


def items_in(pages_: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [item for page in pages_ for item in page["Items"]]


def lengths(pages_: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the counts and the units of each page."""
    units = [(page["ConsumedCapacity"]["CapacityUnits"] if page["Count"] else 0) for page in pages_]
    counts = [(page["Count"], page["ScannedCount"], "LastEvaluatedKey" in page) for page in pages_]
    return list(zip(counts, units, strict=True))


def put_collections(both: Both, table: str, partitions: str, size: int = 0) -> None:
    both.clear()
    for partition in partitions:
        for number, sort in enumerate(("1", "10", "2")):
            item = {"pk": {"S": partition}, "sk": {"S": sort}, "n": {"N": str(number % 2)}}
            more = {"t": {"S": "x" * size}} if size else {}
            both.send("put_item", {"TableName": table, "Item": {**item, **more}})


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_a_scan_continues_after_its_last_key(both: Both, limit: int) -> None:
    """Each page of the simulation has as many items as one of DynamoDB Local."""
    put_collections(both, "sorted", "abc")
    simulated, real = both_pages(both, "scan", {"TableName": "sorted", "Limit": limit})
    for pages_ in (simulated, real):
        for page in pages_:
            if "LastEvaluatedKey" in page:
                last = page["Items"][-1]
                assert page["LastEvaluatedKey"] == {name: last[name] for name in ("pk", "sk")}
    assert lengths(simulated) == lengths(real)
    assert sorted(map(repr_of, items_in(simulated))) == sorted(map(repr_of, items_in(real)))


@pytest.mark.prove
@pytest.mark.parametrize("total", [1, 2, 7, 40])
def test_segments_together_contain_each_collection_once(both: Both, total: int) -> None:
    """DynamoDB Local deals the items of one collection of a global index to several segments."""
    put_collections(both, "indexed", "abcdefgh")
    indexes: list[dict[str, Any]] = [{}, {"IndexName": "by_n"}, {"IndexName": "local"}]
    limits: list[dict[str, Any]] = [{}, {"Limit": 1}, {"Limit": 4}]
    for index, limit in product(indexes, limits):
        segments = [
            both_pages(
                both,
                "scan",
                {"TableName": "indexed", "Segment": n, "TotalSegments": total, **index, **limit},
            )
            for n in range(total)
        ]
        name = "n" if index == {"IndexName": "by_n"} else "pk"
        read = [{repr(item[name]) for item in items_in(simulated)} for simulated, _ in segments]
        assert sum(map(len, read)) == len(set().union(*read)) == {"pk": 8, "n": 2}[name]
        simulated, real = (
            sorted(repr_of(item) for segment in pages_ for item in items_in(segment))
            for pages_ in zip(*segments, strict=True)
        )
        assert simulated == real
        assert len(real) == 24


@pytest.mark.parametrize("total", [2, 7, 1_000_000])
def test_a_start_key_of_another_segment_is_refused(both: Both, total: int) -> None:
    """DynamoDB Local may or may not answer such a request."""
    put_collections(both, "sorted", "a")
    request = {"TableName": both.names["sorted"], "TotalSegments": total, "ExclusiveStartKey": A}
    segment = both.service.tables[both.names["sorted"]].base.place(A)[0] * total // HASHES
    assert both.service.answer("scan", {**request, "Segment": segment})["Count"] == 2
    for wrong in {0, segment - 1, segment + 1, total - 1} & set(range(total)) - {segment}:
        with pytest.raises(ClientError, match="ValidationException"):
            both.service.answer("scan", {**request, "Segment": wrong})


@pytest.mark.prove
@pytest.mark.parametrize("size", [1_000, 4_000, 100_000, 349_000, 400_000])
@pytest.mark.parametrize("index", [{}, {"IndexName": "by_n"}])
def test_a_page_ends_at_a_megabyte(both: Both, size: int, index: dict[str, Any]) -> None:
    put_collections(both, "indexed", "ab", size)
    for more in ({}, {"Limit": 4}):
        request = {"TableName": "indexed", **index, **more}
        simulated, real = both_pages(both, "scan", request)
        assert lengths(simulated) == lengths(real)


def test_updates_move_the_entries_of_indexes(both: Both) -> None:
    put_collections(both, "indexed", "a")
    for text in ["SET n = :n", "SET b = :b", "ADD n :n", "SET b = :b, n = :n, a = :n", "REMOVE n"]:
        values = {name: {":n": TWO, ":b": {"S": "x"}}[name] for name in re.findall(r":\w", text)}
        request = {**updating(text), "TableName": "indexed"}
        request |= {"ExpressionAttributeValues": values} if values else {}
        both.send("update_item", request)
        for index in INDEXES:
            both.send("scan", {"TableName": "indexed", "IndexName": index})


def test_an_update_of_an_index_key_to_another_type_is_refused() -> None:
    """DynamoDB Local accepts it. The service does not."""
    table = Table(table_request(SCHEMAS["indexed"], INDEXES))
    table.put(A)
    with pytest.raises(ClientError, match="ValidationException"):
        Service({"sorted": table}).answer("update_item", updating("SET n = :n", n={"S": "x"}))


@pytest.mark.prove
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
@pytest.mark.parametrize(
    ("index", "condition"),
    [
        ("by_n", "n = :one"),
        ("local", "pk = :a"),
        ("local", "pk = :a AND n >= :one"),
        ("local", "pk = :a AND n BETWEEN :zero AND :one"),
    ],
)
def test_a_query_of_an_index_continues_after_its_last_key(
    both: Both, index: str, condition: str, limit: int, forward: bool
) -> None:
    put_collections(both, "indexed", "abc")
    values = {":a": {"S": "a"}, ":zero": {"N": "0"}, ":one": ONE}
    request = {
        "TableName": "indexed",
        "IndexName": index,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {
            name: values[name] for name in re.findall(r":\w+", condition)
        },
        "ScanIndexForward": forward,
        "Limit": limit,
    }
    simulated, real = both_pages(both, "query", request)
    assert lengths(simulated) == lengths(real)
    assert sorted(map(repr_of, items_in(simulated))) == sorted(map(repr_of, items_in(real)))
    numbers = [[item["n"] for item in items_in(pages_)] for pages_ in (simulated, real)]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("size", [10, 900, 1_100, 5_000])
def test_new_items_cost_a_unit_for_each_kb_and_two_in_a_transaction(both: Both, size: int) -> None:
    both.clear()
    new = [
        {"pk": {"S": f"new {uuid.uuid4()}"}, "sk": {"S": "1"}, "t": {"S": "x" * size}}
        for _ in range(4)
    ]
    total = {"ReturnConsumedCapacity": "TOTAL"}
    batch = {"RequestItems": {"sorted": [{"PutRequest": {"Item": item}} for item in new[:2]]}}
    transaction = transacting(*({"Put": putting(item=item)} for item in new[2:]), **total)
    for operation, request in [
        ("batch_write_item", {**batch, **total}),
        ("transact_write_items", transaction),
    ]:
        request = both.renamed(request)
        expected = outcome(partial(getattr(both.client, operation), **request))
        assert both.service.answer(operation, request) == expected


def test_simulated_streams_return_the_same_records_as_real_ones(both: Both) -> None:
    both.clear()
    schedule = Schedule(random.Random(1))
    name = both.names["sorted"]
    tables = {name: Table(keyed(SCHEMAS["sorted"]), shards=1)}
    service = Service(tables)
    both.used.add(name)
    real_arn = both.client.describe_table(TableName=name)["Table"]["LatestStreamArn"]

    def read(streams: Any, arn: str, write: Callable[..., Any]) -> list[Any]:
        """Write, and read with iterators from before and after the writes."""

        def latest_iterator() -> str:
            answer = streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
            )
            return str(answer["ShardIterator"])

        def event_names(iterator: str, limit: int) -> list[list[str]]:
            pages = []
            for _ in range(4):
                page = streams.get_records(ShardIterator=iterator, Limit=limit)
                iterator = page["NextShardIterator"]
                pages.append([record["eventName"] for record in page["Records"]])
            return pages

        (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        assert "EndingSequenceNumber" not in shard["SequenceNumberRange"]
        before = latest_iterator()
        write("put_item", Item=A)
        write("put_item", Item={**A, "n": ONE})
        write("put_item", Item={**A, "n": ONE})
        write("delete_item", Key=A)
        write("delete_item", Key=A)
        return [
            event_names(before, 2),
            event_names(before, 1_000),
            event_names(latest_iterator(), 10),
        ]

    results: list[Any] = []

    def simulated() -> None:
        def write(operation: str, **request: Any) -> None:
            service.answer(operation, {"TableName": name, **request})

        results.append(read(Streams(schedule, tables), name, write))

    schedule.spawn(simulated, Process("reader"))
    schedule.run()

    def write_to_local(operation: str, **request: Any) -> None:
        getattr(both.client, operation)(TableName=name, **request)

    expected = read(both.real_streams, real_arn, write_to_local)
    assert results == [expected]
    assert expected[0] == [["INSERT", "MODIFY"], ["REMOVE"], [], []]
    with pytest.raises(NotSimulated):
        Streams(schedule, tables).get_shard_iterator(
            StreamArn=name, ShardId=f"{name} 0", ShardIteratorType="AT_SEQUENCE_NUMBER"
        )


# --- the requests that the simulator and the chaos tests send ---


@dataclass
class Recording(Service):
    """A simulated service that keeps its requests, in the order in which they take effect."""

    sent: list[Request] = field(default_factory=list)

    def pieces(
        self, operation: str, request: Mapping[str, Any], answer: dict[str, Any]
    ) -> list[Callable[[], None]]:
        pieces = super().pieces(operation, request, answer)
        parts = list(parts_of(operation, request)) if len(pieces) > 1 else [dict(request)]

        def recorded(piece: Callable[[], None], part: dict[str, Any]) -> None:
            self.sent.append((operation, part))
            piece()

        return [partial(recorded, *both) for both in zip(pieces, parts, strict=True)]


def parts_of(operation: str, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return a batch as batches of one key each."""
    for name, part in request["RequestItems"].items():
        for key in part["Keys"] if operation == "batch_get_item" else part:
            batch = {**part, "Keys": [key]} if operation == "batch_get_item" else [key]
            yield {**request, "RequestItems": {name: batch}}


def replay(
    database_url: str, service: Recording, first: Mapping[str, Sequence[Any]]
) -> Counter[str]:
    """Put the first items, send the recorded requests to both databases, and count operations."""
    schemas = {
        name: {key: table.base.types[key] for key in table.keys}
        for name, table in service.tables.items()
    }
    both = Both(Database("dynamodb_local", database_url), schemas)
    for name, items_ in first.items():
        for item in items_:
            both.send("put_item", {"TableName": name, "Item": item})
    replayed = uuid.uuid4().hex[:3]
    for operation, request in service.sent:
        if "ClientRequestToken" in request:
            token = f"{request['ClientRequestToken'][:32]} {replayed}"
            request = {**request, "ClientRequestToken": token}
        answer = both.send(operation, plain_numbers(request))
        assert answer.get("Error", {}).get("Code") != "ValidationException", (operation, request)
    for name in schemas:
        both.scan_all(name)
    both.check_streams()
    return Counter(operation for operation, _ in service.sent)


@pytest.mark.parametrize(
    "seed", [*map(prove, [3, *range(10, 14)]), *map(prove_long, range(14, 40))]
)
def test_requests_of_sharded_tables_are_answered_alike(
    dynamodb_local_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    services: list[Recording] = []

    def recording(*args: Any, **kwargs: Any) -> Recording:
        services.append(Recording(*args, **kwargs))
        return services[-1]

    monkeypatch.setattr(sharding_world, "Service", recording)
    assert not sharding_run.run(seed).wrong
    (service,) = services
    counts = replay(dynamodb_local_url, service, {})
    assert {"query", "update_item", "put_item"} <= counts.keys()


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    ("seed", "operations", "also_sent"),
    [
        prove(2, 200, set()),
        *(prove_long(seed, 600, set()) for seed in range(3, 5)),
        prove_long(7, 600, {"transact_write_items"}),
    ],
)
def test_requests_of_the_re_key_are_answered_alike(
    dynamodb_local_url: str,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    operations: int,
    also_sent: set[str],
) -> None:
    """Writers use transactions between a cutover and a rollback, for which seed 7 has time."""
    monkeypatch.setattr(chaos_world, "Service", Recording)
    random.seed(seed)  # the waits between attempts
    world = chaos_world.ChaosWorld(random.Random(seed))
    chaos = Chaos(world, operations // 2, operations, 2)
    first: dict[str, Sequence[Any]] = {}
    put_first = world.put_first

    def keep(items_: Sequence[Any]) -> None:
        first[world.pair.source] = items_
        put_first(items_)

    monkeypatch.setattr(world, "put_first", keep)
    chaos.run()
    assert chaos.wrong == []
    counts = replay(dynamodb_local_url, world.service, first)
    assert {"query", "update_item", "put_item", "delete_item"} | also_sent <= counts.keys()
