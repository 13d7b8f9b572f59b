"""`query` with the parameters of boto3's Table: parsed, sent to the shards, and merged.

A KeyConditionExpression is parsed into a partition key and a range of sort keys:

    partition = :value [AND sort (= | < | <= | > | >=) :value | sort BETWEEN :low AND :high
                        | begins_with(sort, :value)]

in any order and with any parentheses (AWS documentation, "Key condition expressions").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from keyhop.dynamodb.units import MOST_SORT_KEY_BYTES
from keyhop.dynamodb.values import KeyType, TypedValue, same_value
from keyhop.errors import CannotStart
from keyhop.sharding.io.boto3_words import Queried, check_limit
from keyhop.sharding.io.items import (
    Clause,
    check_expressions,
    clause_of,
    is_enclosed,
    logical_item,
    projected,
    typed_item,
    untyped,
)
from keyhop.sharding.io.merge import IndexMerge, Merge, Position
from keyhop.sharding.io.reader import Query, Reader
from keyhop.sharding.key.schema import Index, Schema

_NAME, _VALUE = r"(?P<name>#?[\w.-]+)", r"(?P<value>:\w+)"
_TESTS = (
    re.compile(rf"{_NAME}\s*(?P<operator><=|>=|=|<|>)\s*{_VALUE}"),
    re.compile(rf"(?P<operator>begins_with)\s*\(\s*{_NAME}\s*,\s*{_VALUE}\s*\)"),
    re.compile(rf"{_NAME}\s+(?P<operator>BETWEEN)\s+{_VALUE}\s+AND\s+(?P<high>:\w+)", re.I),
)
_GREATEST = {1: "\x7f", 2: "\u07ff", 3: "\uffff", 4: "\U0010ffff"}
"""The last character in sort order by its number of bytes in UTF-8."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of sort keys; None: no limit. excludes: whether the only limit itself is excluded."""

    low: TypedValue | None = None
    high: TypedValue | None = None
    excludes: bool = False


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A partition key and a range. used: the expression's names and values."""

    partition: TypedValue
    range: Range
    used: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Test:
    name: str
    operator: str
    value: str
    high: str | None

    def range(self, values: Mapping[str, TypedValue], type_: KeyType) -> Range:
        value = _value(values, self.value)
        match self.operator:
            case "=":
                return Range(value, value)
            case "<" | "<=":
                return Range(high=value, excludes=self.operator == "<")
            case ">" | ">=":
                return Range(low=value, excludes=self.operator == ">")
            case "begins_with":
                return Range(value, greatest_beginning_with(value, type_))
        assert self.high is not None
        return Range(value, _value(values, self.high))


def key_condition(clause: Clause, partition: str, sort: str, type_: KeyType) -> KeyCondition:
    """Return the condition on the two key attributes, or raise CannotStart for an invalid one."""
    tests = [_test(text) for text in _conjuncts(clause.condition)]
    by_name = {clause.names.get(test.name, test.name): test for test in tests}
    key = by_name.pop(partition, None)
    of_sort = by_name.pop(sort, None)
    if key is None or key.operator != "=" or by_name or len(tests) > 2:
        raise CannotStart(
            f"KeyConditionExpression must be {partition} = one value, and at most one condition "
            f"on {sort} besides."
        )
    used = {word for test in tests for word in (test.name, test.value, test.high) if word}
    within = of_sort.range(clause.values, type_) if of_sort else Range()
    return KeyCondition(_value(clause.values, key.value), within, frozenset(used))


def greatest_beginning_with(value: TypedValue, type_: KeyType) -> TypedValue:
    """Return the greatest sort key with this beginning. Raise CannotStart for a number."""
    content = value.get(type_)
    if type_ == "B" and content is not None:
        return {"B": bytes(content).ljust(MOST_SORT_KEY_BYTES, b"\xff")}
    if type_ == "S" and content is not None:
        wide, rest = divmod(max(0, MOST_SORT_KEY_BYTES - len(content.encode())), 4)
        return {"S": content + _GREATEST[4] * wide + _GREATEST.get(rest, "")}
    raise CannotStart(f"begins_with must be given a value of the type {type_} of the sort key.")


def _conjuncts(text: str) -> list[str]:
    """Return the expression's one or two tests, without enclosing parentheses."""
    text = text.strip()
    while is_enclosed(text):
        text = text[1:-1].strip()
    for at, between in _ands(text):
        if not between:
            return [*_conjuncts(text[: at.start()]), *_conjuncts(text[at.end() :])]
    return [text]


def _ands(text: str) -> list[tuple[re.Match[str], bool]]:
    """Return the ANDs outside of parentheses, and whether each belongs to a BETWEEN."""
    ands, after_between = [], False
    for word in re.finditer(r"\bBETWEEN\b|\bAND\b", text, re.I):
        before = text[: word.start()]
        if before.count("(") != before.count(")") or before[-1:] in ("#", ":", ".", "-"):
            continue
        if word[0].upper() == "BETWEEN":
            after_between = True
        else:
            ands.append((word, after_between))
            after_between = False
    return ands


def _test(text: str) -> _Test:
    for form in _TESTS:
        match = form.fullmatch(text)
        if match is not None:
            parts: Mapping[str, str] = match.groupdict()
            return _Test(parts["name"], parts["operator"], parts["value"], parts.get("high"))
    raise CannotStart(f"KeyConditionExpression has {text!r}, which is not a condition on a key.")


def _value(values: Mapping[str, TypedValue], name: str) -> TypedValue:
    if name not in values:
        raise CannotStart(f"KeyConditionExpression has {name}, but no value was given for it.")
    value = values[name]
    if value.keys().isdisjoint(get_args(KeyType)):
        raise CannotStart(
            "KeyConditionExpression compares a key with a value that is not a text, number or "
            "bytes. Write values as for boto3's Table: 'a', not {'S': 'a'}."
        )
    return value


_WORD = re.compile(r"[#:]\w+")


def table_query(reader: Reader, words: Queried, index: Index | None) -> dict[str, Any]:
    """Return the answer, without data about its requests. index: the index to query."""
    limit = words.get("Limit")
    check_limit("Limit", limit)
    if index is not None and not index.carries_shard(reader.schema):
        return _unsharded(reader, words, index)
    sort = reader.schema.sort if index is None else index.sort[0]
    clause = clause_of(
        words.get("KeyConditionExpression"),
        words.get("ExpressionAttributeNames"),
        words.get("ExpressionAttributeValues"),
        is_key=True,
    )
    condition = key_condition(clause, reader.schema.partition.name, sort.name, sort.type)
    needed = list(dict.fromkeys((sort.name, reader.schema.sort.name)))
    more, ours = _more(reader.schema, words, condition.used, needed)
    query = Query(
        condition.partition,
        (condition.range.low, condition.range.high),
        not words.get("ScanIndexForward", True),
        words.get("ConsistentRead", False),
        limit=limit,
        index=None if index is None else index.name,
        more=more,
    )
    if index is None or sort == reader.schema.sort:
        answer = _of_table(reader, words, query, condition)
    else:
        answer = _of_index(reader, words, replace(query, sort=sort.name), condition)
    for item in answer["Items"]:
        for name in ours:
            del item[name]
    return _counted(answer, words)


def _of_table(
    reader: Reader, words: Queried, query: Query, condition: KeyCondition
) -> dict[str, Any]:
    """Query by the table's sort key, which is different for each item of a key."""
    schema, within = reader.schema, condition.range
    start = _start_key(reader, words, query.logical, {schema.sort.name})
    after = None if start is None else start[schema.sort.name]
    near = within.high if query.descending else within.low
    if within.excludes and near is not None:
        after = after or near  # start after it
    query = replace(query, after=after, excludes=within.excludes and near is None)
    merge = Merge(reader, query)
    items, last = merge.page(query.limit, "FilterExpression" in query.more)
    answer = _answer(schema, query, items, merge.scanned)
    if last is not None:
        answer["LastEvaluatedKey"] = _shown(schema, query, {schema.sort.name: last})
    return answer


def _of_index(
    reader: Reader, words: Queried, query: Query, condition: KeyCondition
) -> dict[str, Any]:
    """Query by an index's sort key, which may be the same for many items."""
    schema, within = reader.schema, condition.range
    if query.consistent:
        raise CannotStart(
            f"The index {query.index!r} cannot be read with ConsistentRead: while items are "
            "moved, it would return them twice or not at all. Read the table instead."
        )
    assert query.sort is not None
    names = {query.sort}, {query.sort, schema.sort.name}
    start = _start_key(reader, words, query.logical, *names)
    after: Position | None = None
    if start is not None:
        after = start[query.sort], start.get(schema.sort.name)
    excluded = (within.low or within.high) if within.excludes else None
    merge = IndexMerge(reader, query, after, excluded)
    items, last = merge.page(query.limit, "FilterExpression" in query.more)
    answer = _answer(schema, query, items, merge.scanned)
    if last is not None:
        keys = {query.sort: last[0]} | ({} if last[1] is None else {schema.sort.name: last[1]})
        answer["LastEvaluatedKey"] = _shown(schema, query, keys)
    return answer


def _unsharded(reader: Reader, words: Queried, index: Index) -> dict[str, Any]:
    """Query an index whose partition key has no suffix, with one request. Its LastEvaluatedKey has
    the physical key, which the next page needs.
    """
    schema = reader.schema
    clause = clause_of(
        words.get("KeyConditionExpression"),
        words.get("ExpressionAttributeNames"),
        words.get("ExpressionAttributeValues"),
        is_key=True,
    )
    check_expressions(schema, clause, "")
    used = frozenset(_WORD.findall(clause.condition))
    more, _ = _more(schema, words, used, [])
    request = {
        **more,
        "TableName": schema.table,
        "IndexName": index.name,
        "KeyConditionExpression": clause.condition,
        "ScanIndexForward": words.get("ScanIndexForward", True),
        "ConsistentRead": words.get("ConsistentRead", False),
    }
    for kind, values in (("Names", clause.names), ("Values", clause.values)):
        name = f"ExpressionAttribute{kind}"
        both = {**{word: values[word] for word in used if word in values}, **more.get(name, {})}
        request |= {name: both} if both else {}
    if words.get("Select") == "COUNT":
        request["Select"] = "COUNT"
    if words.get("Limit") is not None:
        request["Limit"] = words["Limit"]
    start = words.get("ExclusiveStartKey")
    if start is not None:
        request["ExclusiveStartKey"] = typed_item(start)
    response = reader.requests.call("query", **request)
    answer = {name: response[name] for name in ("Count", "ScannedCount")}
    if "LastEvaluatedKey" in response:
        last = response["LastEvaluatedKey"]
        answer["LastEvaluatedKey"] = {name: untyped(value) for name, value in last.items()}
    items = [_logical(schema, item) for item in response.get("Items", ())]
    return _counted({"Items": items, **answer}, words)


def _logical(schema: Schema, item: Mapping[str, TypedValue]) -> dict[str, Any]:
    """Return an item with the logical key that its physical key contains."""
    physical = item.get(schema.partition.name, {})
    parsed = schema.names.parsed(physical)
    return logical_item(schema, item, physical if parsed is None else parsed[0])


def _more(
    schema: Schema, words: Queried, used: frozenset[str], needed: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters of each request besides the key condition, and the added attributes.
    Names and values that only the key condition uses are left out.
    """
    clause = clause_of(
        words.get("FilterExpression"),
        words.get("ExpressionAttributeNames"),
        words.get("ExpressionAttributeValues"),
    )
    check_expressions(schema, clause, "")
    projection, select = words.get("ProjectionExpression"), words.get("Select")
    if select == "COUNT" and projection is not None:
        raise CannotStart("Select COUNT has no ProjectionExpression: it returns no attributes.")
    if select == "COUNT" and needed:
        projection = ""
    unused = used.difference(_WORD.findall(f"{clause.condition} {projection}"))
    names = {name: path for name, path in clause.names.items() if name not in unused}
    values = {name: value for name, value in clause.values.items() if name not in unused}
    shape, ours = projected(projection, names, needed)
    more = {
        "FilterExpression": clause.condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "Select": None if select == "COUNT" else select,
        **shape,
    }
    return {name: value for name, value in more.items() if value}, ours


def _start_key(
    reader: Reader, words: Queried, logical: TypedValue, *sorts: set[str]
) -> dict[str, TypedValue] | None:
    """Return the ExclusiveStartKey, which must have the key and one of these sets of attributes."""
    start = words.get("ExclusiveStartKey")
    if start is None:
        return None
    key, partition = typed_item(start), reader.schema.partition.name
    is_ours = partition in key and same_value(key[partition], logical)
    if not is_ours or key.keys() - {partition} not in sorts:
        message = "The provided starting key is invalid"
        raise reader.requests.refusal("ValidationException", message, "Query")
    return key


def _answer(
    schema: Schema, query: Query, items: list[dict[str, Any]], scanned: int
) -> dict[str, Any]:
    is_filtered = "FilterExpression" in query.more
    return {
        "Items": [logical_item(schema, item, query.logical) for item in items],
        "Count": len(items),
        "ScannedCount": scanned if is_filtered else len(items),
    }


def _counted(answer: dict[str, Any], words: Queried) -> dict[str, Any]:
    if words.get("Select") == "COUNT":
        del answer["Items"]
    return answer


def _shown(schema: Schema, query: Query, keys: dict[str, TypedValue]) -> dict[str, Any]:
    return logical_item(schema, {schema.partition.name: query.logical, **keys}, query.logical)
