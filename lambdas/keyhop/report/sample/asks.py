"""The requests of a sample as values: the code that chooses the next read sends nothing. Pure.

A read for one purpose is a generator of `Ask`s, which receives an `Answer` for each and returns a
T: `Asks[T]`. `reading.Asker` runs it, and in tests any other source of answers.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from keyhop.dynamodb.values import Item, Key, TypedValue

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A Scan or a Query of at most `limit` items.

    Attributes:
        operation: scan or query.
        limit: The maximum number of items; None for as many as a block should hold.
        parameters: The parameters of the API, without the table.
        may_be_refused: Whether a refusal is an answer instead of an error.
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
        """Return the request for a page of a segment, after `start`."""
        parameters: dict[str, Any] = {} if index is None else {"IndexName": index}
        if segments > 1:
            parameters |= {"Segment": segment, "TotalSegments": segments}
        if start is not None:
            parameters["ExclusiveStartKey"] = start
        return cls("scan", limit, parameters, may_be_refused)

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
        """Return the request for items of a collection, in the order of its sort key or against it.

        They begin at `at`, or after it with `beyond`.
        """
        names = {f"#{number}": name for number, name in enumerate(key)}
        values = {f":{number}": value for number, value in enumerate(key.values())}
        conditions = [f"#{number} = :{number}" for number in range(len(key))]
        if sort is not None and at is not None:
            names["#s"], values[":s"] = sort, at
            operator = (">" if forward else "<") + ("" if beyond else "=")
            conditions.append(f"#s {operator} :s")
        parameters: dict[str, Any] = {
            "KeyConditionExpression": " AND ".join(conditions),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        if not forward:
            parameters["ScanIndexForward"] = False
        return cls("query", limit, parameters)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an Ask.

    Attributes:
        items: The items of the page.
        next: The LastEvaluatedKey; None if there are no more items.
        units: The read units.
        refused: Whether the service refused the request, as with a start key of another segment;
            then there is nothing else.
    """

    items: Sequence[Item]
    next: Key | None
    units: float = 0.0
    refused: bool = False


Asks = Generator[Ask, Answer, T]
