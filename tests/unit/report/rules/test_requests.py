"""A4, A5, A10, A11, A12, A14, A17: what the application asks, and its code."""

from typing import Any

import pytest
from keyhop.report.facts import CodeFacts, CodeLine, RequestShape
from keyhop.report.findings import Evidence

from tests.unit.report.rules.world import DAY, NOW, facts, gsi, says, share, verdict

BUSY = {"GetItem": 1e6, "PutItem": 1e6, "Scan": 0.0, "TransactWriteItems": 0.0}
USED = {("read", ""): 1e6, ("write", ""): 1e6}


def counted(**calls: float) -> dict[str, Any]:
    return {"calls": {**BUSY, **calls}, "consumed": USED}


def line(kind: Any, table: str = "") -> CodeFacts:
    return CodeFacts(3, (CodeLine(kind, "app/a.py", 17, "table.scan()", table),))


def asked(*shapes: RequestShape) -> dict[str, Any]:
    return {"shapes": shapes}


def query(
    count: int,
    scanned: int,
    calls: int = 500,
    units: float = 500.0,
    filters: tuple[str, ...] = ("state",),
) -> RequestShape:
    return RequestShape("Query", "", ("pk",), filters, calls, count, scanned, units, 0)


def test_scans() -> None:
    assert verdict("A4", facts(metrics=counted(Scan=1.0))) == ("found", "low")
    assert verdict("A4", facts(metrics=counted())) == ("clear", "info")
    assert verdict("A4", facts(metrics={"calls": {"GetItem": 9.0}})) == ("unknown", "info")
    assert verdict("A4", facts({"created": NOW - 60}, metrics=counted())) == ("unknown", "info")
    assert verdict("A4", facts(metrics=counted(ExecuteStatement=9.0))) == ("unknown", "info")
    dear = {**counted(Scan=2e6), "consumed": {("read", ""): 2e8}}
    assert verdict("A4", facts(metrics=dear)) == ("found", "medium")
    assert says("A4", facts(metrics=dear)).advice.cost.today > 60  # type: ignore[union-attr, operator]


def test_an_export_may_scan() -> None:
    """A million items of 1 KB are 954 full pages; once a day."""
    export = {**counted(Scan=14 * 954.0), "returned": {"Scan": 14e6}}
    assert verdict("A4", facts(metrics=export)) == ("found", "info")
    often = {**counted(Scan=42 * 954.0), "returned": {"Scan": 42e6}}
    assert verdict("A4", facts(metrics=often))[1] != "info"
    filtered = {**counted(Scan=14 * 954.0), "returned": {"Scan": 1e6}}
    assert verdict("A4", facts(metrics=filtered))[1] != "info"


def test_a_line_that_scans() -> None:
    assert verdict("A4", facts(code=line("scan"))) == ("found", "low")
    assert says("A4", facts(code=line("scan"))).evidence == (
        Evidence("code", "table.scan()", n=1, where="app/a.py:17"),
    )
    assert verdict("A4", facts(code=line("scan", "Others"))) == ("unknown", "info")
    assert verdict("A4", facts(code=line("scan"), metrics=counted())) == ("found", "info")


def test_scans_that_were_watched() -> None:
    def scan(calls: int) -> RequestShape:
        return RequestShape("Scan", "", (), (), calls, 9, 9, 1.0, 0)

    assert verdict("A4", facts(requests=asked(scan(400)))) == ("found", "low")
    few = asked(scan(1), query(9, 9, filters=()))
    assert verdict("A4", facts(requests=few)) == ("unknown", "info")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (query(5_000, 10_000), ("found", "low")),
        (query(5_000, 10_000, units=1e6), ("found", "medium")),
        (query(9_600, 10_000), ("clear", "info")),
        (query(9_000, 10_000), ("unknown", "info")),
        (query(10_000, 10_000, calls=384), ("unknown", "info")),
        # The end of a page makes neither count smaller.
        (query(5_000, 10_000, filters=()), ("clear", "info")),
    ],
)
def test_filters(shape: RequestShape, expected: tuple[str, str]) -> None:
    assert verdict("A5", facts(requests=asked(shape))) == expected


def test_a_filter_in_the_code_is_a_suspicion_only() -> None:
    of = facts(code=line("filter"))
    assert verdict("A5", of) == ("unknown", "info")
    assert says("A5", of).evidence[0].where == "app/a.py:17"
    assert says("A5", of).price.remedy == "--requests FILE"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("followed", "expected"),
    [
        ((50, 100), ("found", "low")),
        ((0, 385), ("clear", "info")),
        ((0, 300), ("unknown", "info")),
        ((1, 100), ("unknown", "info")),
        ((0, 0), ("unknown", "info")),
    ],
)
def test_read_after_write(followed: tuple[int, int], expected: tuple[str, str]) -> None:
    of = facts({"indexes": (gsi(),)}, requests={"followed": {"by-status": followed}})
    assert verdict("A10", of, "by-status") == expected


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ({"reversals": {"status": (1600, 24)}}, ("found", "low")),
        ({"reversals": {"status": (1600, 400)}}, ("found", "info")),  # legal ones
        ({"reversals": {"status": (1600, 0)}}, ("clear", "info")),
        ({"reversals": {"status": (100, 0)}}, ("unknown", "info")),
        ({"reversals": {}}, ("unknown", "info")),
        ({"reversals": {}, "view": "KEYS_ONLY"}, ("unknown", "info")),
    ],
)
def test_status_changes(stream: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict("A11", facts(stream=stream)) == expected


def test_a_status_set_without_a_condition() -> None:
    assert verdict("A11", facts(code=line("status"))) == ("found", "low")
    assert verdict("A11", facts(code=CodeFacts(3))) == ("unknown", "info")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"metrics": counted(TransactWriteItems=9.1e6)}, ("found", "low")),
        ({"metrics": counted(TransactWriteItems=8.9e6)}, ("clear", "info")),
        ({"metrics": {"calls": {"PutItem": 1.0, "TransactWriteItems": 58.0}}}, ("unknown", "info")),
        ({"metrics": {"calls": {"GetItem": 1e6}}}, ("unknown", "info")),
        ({"requests": {}}, ("unknown", "info")),
    ],
)
def test_transactions(seen: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict("A12", facts(**seen)) == expected


def test_transactions_of_one_item() -> None:
    def shape(alone: int, units: float) -> RequestShape:
        return RequestShape("TransactWriteItems", "", (), (), 400, 0, 0, units, 0, alone)

    assert verdict("A12", facts(requests=asked(shape(400, 800.0)))) == ("found", "low")
    assert verdict("A12", facts(requests=asked(shape(400, 1e6)))) == ("found", "medium")
    two = facts(requests=asked(shape(0, 800.0)), metrics=counted(TransactWriteItems=100.0))
    assert verdict("A12", two) == ("clear", "info")


def test_leftovers_of_batches() -> None:
    assert verdict("A14", facts(code=line("unprocessed"))) == ("found", "low")
    assert verdict("A14", facts(code=line("unprocessed", "Others"))) == ("clear", "info")
    assert verdict("A14", facts(code=line("batch_write"))) == ("unknown", "info")  # a wrapper
    assert verdict("A14", facts(code=CodeFacts(3))) == ("clear", "info")
    assert verdict("A14", facts(code=CodeFacts(0))) == ("unknown", "info")
    assert verdict("A14", facts(code=CodeFacts(3, unreadable=("b.py",)))) == ("unknown", "info")


def gets(consistent: int, calls: int = 500, units: float = 500.0) -> RequestShape:
    return RequestShape("GetItem", "", ("pk",), (), calls, calls, calls, units, consistent)


SMALL = {"item_bytes": {0.99: share(900, 800, 4096)}}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"requests": asked(gets(500))}, ("found", "low")),
        ({"requests": asked(gets(500, units=1e7))}, ("found", "medium")),
        ({"requests": asked(gets(400))}, ("unknown", "info")),
        ({"requests": asked(gets(25))}, ("clear", "info")),
        ({"metrics": counted(), "sample": SMALL}, ("found", "low")),
        ({"metrics": counted(GetItem=2e6), "sample": SMALL}, ("clear", "info")),
        ({"metrics": counted(GetItem=1.3e6), "sample": SMALL}, ("unknown", "info")),
        ({"metrics": counted(Query=1e5), "sample": SMALL}, ("unknown", "info")),
        ({"metrics": counted()}, ("unknown", "info")),
        (
            {"metrics": counted(), "sample": {"item_bytes": {0.99: share(900, 800, 4097)}}},
            ("unknown", "info"),
        ),
    ],
)
def test_consistent_reads(seen: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict("A17", facts(**seen)) == expected
    assert DAY
