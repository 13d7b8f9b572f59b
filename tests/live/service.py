"""What Keyhop relies on, asked of the service itself: plain Scans, nothing of Keyhop's between."""

import random
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.client import Connection, dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.schema import GREATEST_SORT_KEY
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.rekey.life_cycle.features import TABLE, unknown_members

from tests.live.fixtures import INDEX, Fixture, comparable, in_order
from tests.live.report import Report, expect, expect_equal, expect_keys
from tests.live.ways import Ways

SEGMENTS = 4
MOST_SEGMENTS = 1_000_000
MOST_LOOKS = 20
"""Random segments of a million that are looked at until one is empty; nearly all are."""


class Scans:
    """Scans of one table or index, in SEGMENTS segments; counts what they cost."""

    def __init__(self, client: Any, table: Fixture, index: str | None = None) -> None:
        self.table = table
        self.read_units = 0.0
        self.empty_pages = 0
        self._client = client
        self._more = {} if index is None else {"IndexName": index}

    def page(self, segment: int, start: Any = None, total: int = SEGMENTS, **more: Any) -> Any:
        """One page; start: its ExclusiveStartKey."""
        if start is not None:
            more["ExclusiveStartKey"] = start
        page = self._client.scan(
            TableName=self.table.name,
            Segment=segment,
            TotalSegments=total,
            ReturnConsumedCapacity="TOTAL",
            **self._more,
            **more,
        )
        self.read_units += max(UNITS_PER_BLOCK, units(page))
        return page

    def landing(self, segment: int, start: Any = None) -> Any:
        """Pages of one item from `start` on, until there is an item or the end.

        An empty page with a LastEvaluatedKey is not the end: these are counted.
        """
        page = self.page(segment, start, Limit=1)
        while not page["Items"] and "LastEvaluatedKey" in page:
            self.empty_pages += 1
            page = self.page(segment, page["LastEvaluatedKey"], Limit=1)
        return page

    def items(self, segment: int, **more: Any) -> Iterator[dict[str, Any]]:
        """All items of a segment, page by page."""
        page = self.page(segment, **more)
        yield from page["Items"]
        while "LastEvaluatedKey" in page:
            page = self.page(segment, page["LastEvaluatedKey"], **more)
            yield from page["Items"]

    @cached_property
    def segments(self) -> list[list[dict[str, Any]]]:
        """The partition keys of each segment in the order of a plain Scan, neighbours made one."""
        return [self._keys_of(segment) for segment in range(SEGMENTS)]

    def _keys_of(self, segment: int) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = []
        for item in self.items(segment):
            if not keys or comparable(keys[-1]) != comparable(item["pk"]):
                keys.append(item["pk"])
        return keys

    def place_of(self, key: dict[str, Any]) -> tuple[int, int]:
        """The segment that a partition key is in, and its place there."""
        for segment, keys in enumerate(self.segments):
            for place, other in enumerate(keys):
                if comparable(other) == comparable(key):
                    return segment, place
        raise LookupError(f"{key} is in no segment of {self.table.name}")

    def hop_from(self, key: dict[str, Any]) -> dict[str, Any]:
        """The synthetic start key: the end of an item collection."""
        assert self.table.sort is not None
        return {"pk": key, "sk": GREATEST_SORT_KEY[self.table.sort]}


def units(page: dict[str, Any]) -> float:
    """What a page was charged."""
    return float(page["ConsumedCapacity"]["CapacityUnits"])


def check_service(client: Any, tables: list[Fixture], ways: Ways, report: Report) -> float:
    """All of it, the synthetic start key first of all; returns the read units."""
    hopping = [(t, Scans(client, t)) for t in tables if t.shape == "hops"]
    kinds = {t.name: f"partition key {t.partition}, sort key {t.sort}" for t, _ in hopping}
    for table, scans in hopping:
        report.check("hop", lambda scans=scans: hops(scans, ways), kinds[table.name])
    for table, scans in hopping:
        for name, look in (
            ("hop-from-large", leaves_the_large_collection),
            ("foreign-segment", foreign_start_keys),
            ("greatest-sort-key", greatest_sort_keys),
            ("empty-segment", lambda scans: empty_segments(scans, ways)),
        ):
            report.check(name, lambda look=look, scans=scans: look(scans), kinds[table.name])
    counted = [scans for _, scans in hopping]
    for table in tables:
        report.check(
            "table-identity", lambda table=table: identity(client, table, ways), table.name
        )
        report.check("table-members", lambda table=table: members(client, table), table.name)
        if table.has_index:
            counted.append(Scans(client, table, INDEX))
            report.check("index-segments", lambda scans=counted[-1]: index_by_segments(scans))
    return sum(scans.read_units for scans in counted)


def hops(scans: Scans, ways: Ways) -> str:
    """Walk each segment with Limit=1; the plain Scan of it says what must be met."""
    expect_keys((comparable(key) for keys in scans.segments for key in keys), scans.table.keys)
    count = 0
    for segment, keys in enumerate(scans.segments):
        page = scans.landing(segment)
        for key in keys:
            expect(page["Items"], f"segment {segment} ended before {comparable(key)}")
            expect_equal(comparable(page["Items"][0]["pk"]), comparable(key), "a hop landed on")
            expect_equal(units(page), UNITS_PER_BLOCK, "read units of a page of one small item")
            page = scans.landing(segment, scans.hop_from(key))
            count += 1
        expect_equal(page["Items"], [], "after the last collection")
        expect_equal(units(page), ways.empty_page_units, "read units of the page at the end")
    return f"{count} hops, {scans.empty_pages} empty pages with a LastEvaluatedKey"


def leaves_the_large_collection(scans: Scans) -> str:
    """A page that begins at the collection ends in it; the hop from there leaves it."""
    large = scans.table.large
    segment, place = scans.place_of(large)
    keys = scans.segments[segment]
    before = scans.hop_from(keys[place - 1]) if place else None
    page = scans.page(segment, before)
    met = {comparable(item["pk"]) for item in page["Items"]}
    expect_equal(met, {comparable(large)}, "keys on the page of 1 MB")
    last = page.get("LastEvaluatedKey")
    expect(last, "the collection fits into a page")
    expect_equal(comparable(last["pk"]), comparable(large), "the page ended at")
    beyond = scans.landing(segment, scans.hop_from(last["pk"]))
    following = [comparable(key) for key in keys[place + 1 : place + 2]]
    landed = [comparable(item["pk"]) for item in beyond["Items"]]
    expect_equal(landed, following, "the hop from it landed on")
    return f"a page held {page['Count']} of its items, for {units(page)} read units"


def foreign_start_keys(scans: Scans) -> str:
    """The first key of each segment, used in the next segment."""
    tried = 0
    for segment, keys in enumerate(scans.segments):
        if keys:
            tried += 1
            try:
                scans.page((segment + 1) % SEGMENTS, scans.hop_from(keys[0]), Limit=1)
            except ClientError as error:
                expect_equal(error.response["Error"]["Code"], "ValidationException", "the error")
                message = error.response["Error"]["Message"]
            else:
                expect(False, f"a start key of segment {segment} was taken elsewhere")
    expect(tried >= 2, "all keys are in one segment")
    return f'"{message}"'


def greatest_sort_keys(scans: Scans) -> None:
    """A collection with all extreme sort keys: they come in their order, the greatest one last."""
    assert scans.table.sort is not None
    key = scans.table.of_all_extremes
    segment, _ = scans.place_of(key)
    *_, second, greatest = in_order(scans.table.sort)
    expect_equal(greatest, GREATEST_SORT_KEY[scans.table.sort], "the greatest of EXTREMES")
    page = scans.landing(segment, {"pk": key, "sk": second})
    expect(page["Items"], "nothing was found after the second greatest sort key")
    item = page["Items"][0]
    expect_equal(comparable(item["pk"]), comparable(key), "the next item is of")
    expect_equal(comparable(item["sk"]), comparable(greatest), "the next item has the sort key")
    wanted = {
        (comparable(item["pk"]), comparable(item["sk"]))
        for item in scans.table.items
        if comparable(item["sk"]) == comparable(greatest)
    }
    found = [
        (comparable(item["pk"]), comparable(item["sk"]))
        for segment in range(SEGMENTS)
        for item in scans.items(segment)
    ]
    expect_keys((pair for pair in found if pair[1] == comparable(greatest)), wanted)
    met = [sort for partition, sort in found if partition == comparable(key)]
    ordered = [comparable(value) for value in in_order(scans.table.sort)]
    expect_equal(met, ordered, "the sort keys of a collection, in the order of a Scan")


def empty_segments(scans: Scans, ways: Ways) -> None:
    """Of a million segments, nearly all are empty."""
    for _ in range(MOST_LOOKS):
        page = scans.page(random.randrange(MOST_SEGMENTS), total=MOST_SEGMENTS)
        if not page["Items"]:
            expect_equal(units(page), ways.empty_page_units, "read units of an empty page")
            return
    expect(False, f"{MOST_LOOKS} of {MOST_SEGMENTS:,} segments were not empty")


def identity(client: Any, table: Fixture, ways: Ways) -> None:
    """A run that goes on must notice that the table was replaced."""
    description = client.describe_table(TableName=table.name)["Table"]
    expect(description["TableArn"].endswith(f"table/{table.name}"), description["TableArn"])
    if ways.has_table_id:
        expect(description.get("TableId"), "there is no TableId")


def replaced(client: Any, table: Fixture, make: Callable[[], None]) -> str:
    """Delete a table, let `make` create another one of its name, and compare their TableIds."""
    before = client.describe_table(TableName=table.name)["Table"]["TableId"]
    client.delete_table(TableName=table.name)
    client.get_waiter("table_not_exists").wait(TableName=table.name)
    make()
    after = client.describe_table(TableName=table.name)["Table"]["TableId"]
    expect(before != after, f"the table was replaced, and its TableId is {after} as before")
    return f"{before}, then {after}"


def members(client: Any, table: Fixture) -> None:
    """By Keyhop's own client: boto3's client drops the members that botocore does not know."""
    endpoint = Endpoint(client.meta.region_name, url=client.meta.endpoint_url)
    own = look_up(Connection(dynamodb_client(endpoint), endpoint), table.name)
    unknown = unknown_members(own.description, TABLE)
    expect(not unknown, f"DescribeTable has {', '.join(unknown)}, which Keyhop does not know")


def index_by_segments(scans: Scans) -> str:
    """Small pages, each going on from the LastEvaluatedKey of the one before."""
    found = [list(scans.items(segment, Limit=50)) for segment in range(SEGMENTS)]
    wanted = {(comparable(item["pk"]), comparable(item["sk"])) for item in scans.table.items}
    expect_keys(
        ((comparable(item["pk"]), comparable(item["sk"])) for items in found for item in items),
        wanted,
    )
    segments = [{item["day"]["S"] for item in items} for items in found]
    split = {day for day in set().union(*segments) if sum(day in part for part in segments) > 1}
    return f"{len(split)} of its keys are in more than one segment"
