"""What a sample asks of a table, as values: whoever decides what to read next sends nothing. Pure.

What is read for one purpose is a generator of `Ask`s that gets an `Answer` for each: `Asks[T]`, and
returns a T. It is run by `reading.Asker`, and in tests by whatever answers.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from keyhop.dynamodb.values import Item, Key, TypedValue

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A Scan or a Query of at most `limit` items; None for as many as a block should hold.

    parameters: as the API takes them, without the table. may_be_refused: then that is an answer.
    """

    operation: str
    limit: int | None
    parameters: dict[str, Any] = field(default_factory=dict)
    may_be_refused: bool = False

    @classmethod
    def scan(
        cls,
        segment: int,
        segments: int,
        start: Key | None = None,
        index: str | None = None,
        limit: int | None = None,
        may_be_refused: bool = False,
    ) -> "Ask":
        """A page of a segment, after `start`."""
        told: dict[str, Any] = {} if index is None else {"IndexName": index}
        if segments > 1:
            told |= {"Segment": segment, "TotalSegments": segments}
        if start is not None:
            told["ExclusiveStartKey"] = start
        return cls("scan", limit, told, may_be_refused)

    @classmethod
    def query(
        cls,
        key: Key,
        sort: str | None = None,
        at: TypedValue | None = None,
        forward: bool = True,
        limit: int | None = None,
        beyond: bool = False,
    ) -> "Ask":
        """Items of a collection, in the order of its sort key or against it; from `at` on, or with
        `beyond` after it.
        """
        names = {f"#{number}": name for number, name in enumerate(key)}
        values = {f":{number}": value for number, value in enumerate(key.values())}
        conditions = [f"#{number} = :{number}" for number in range(len(key))]
        if sort is not None and at is not None:
            names["#s"], values[":s"] = sort, at
            operator = (">" if forward else "<") + ("" if beyond else "=")
            conditions.append(f"#s {operator} :s")
        told: dict[str, Any] = {
            "KeyConditionExpression": " AND ".join(conditions),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        if not forward:
            told["ScanIndexForward"] = False
        return cls("query", limit, told)


@dataclass(frozen=True, slots=True)
class Answer:
    """next: the LastEvaluatedKey; None if there is nothing more. refused: the service would not
    have the request, as with a start key of another segment; then there is nothing else.
    """

    items: Sequence[Item]
    next: Key | None
    units: float = 0.0
    refused: bool = False


Asks = Generator[Ask, Answer, T]
