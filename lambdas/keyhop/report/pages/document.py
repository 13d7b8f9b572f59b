"""The report as one JSON document: `keyhop report --format json`, and a baseline for the next.

The shapes are published as docs/schemas/Report.output.json. Values that are infinite or not a
number are null, because JSON has neither. `pictures` is made from the facts, as the data from which
pages draw (pictures.py, tables.py): a picture without data is omitted.
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from keyhop.dynamodb.units import COLLECTION_BYTES
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    CandidateFacts,
    Collection,
    Facts,
    IndexFacts,
    InsightFacts,
    MetricFacts,
    SampleFacts,
    StreamFacts,
    kinds_among,
)
from keyhop.report.findings import (
    Advice,
    Evidence,
    Price,
    Report,
    Severity,
    Spent,
    Status,
    worst_first,
)

SCHEMA: Literal["keyhop-report/1"] = "keyhop-report/1"
"""The number grows when a field is removed or changes its meaning, not when one is added."""

PLACES = 128
"""The rows of the key map; each is 1/128 of the hash space."""
MINUTES = 180
"""The maximum number of columns of the key map; in a longer time each is several minutes."""
MOST_ROWS = 12
"""The maximum number of rows of a table or of bars: nobody reads more."""


class FindingJson(TypedDict):
    """The answer of one rule about one target."""

    id: Annotated[str, "of the rule, as A6"]
    title: str
    status: Status
    severity: Severity
    target: Annotated[str, "an index; empty for the table"]
    summary: str
    evidence: list[Evidence]
    advice: Advice | None
    price_of_knowing: Price | None


class KeyMap(TypedDict):
    """Writes by hash place and time; a cell is [column, row of 128, write units a second]."""

    began: float
    column_seconds: float
    columns: int
    rows: int
    cells: list[list[float | None]]


class Quantile(TypedDict):
    """A quantile (0.5, 0.9, 0.99); `bytes` are without indexes, null if the table reports none."""

    quantile: float
    items: NotRequired[Estimate]
    bytes: Estimate | None


class Unseen(TypedDict):
    """The share of all items that is in collections of more than `items` items."""

    share: Estimate
    items: float | None


class Sizes(TypedDict):
    """Sizes of collections; `limit` is in bytes, and counts only if there are local indexes."""

    quantiles: list[Quantile]
    largest: NotRequired[Quantile]
    unseen: NotRequired[Unseen]
    beyond: list[Unseen]
    item_bytes: float | None
    limit: float
    local_indexes: bool


class Lorenz(TypedDict):
    """A Lorenz curve of [share of keys, share of items], the smallest collections first."""

    points: list[list[float | None]]
    gini: Estimate | None


class Top(TypedDict):
    """The largest known collections.

    `biased` are the sources that find giants, and `exhaustive` says whether the length of every
    collection was counted or estimated. Without either, the list may lack the largest collections.
    """

    collections: list[Collection]
    biased: list[str]
    exhaustive: bool


class ItemBytes(TypedDict):
    """Sizes of single items; `large` is the share of items of 350 KB or more."""

    quantiles: list[Quantile]
    largest: float | None
    large: Estimate | None


class Share(TypedDict):
    """A tag, a shape or an attribute, with the share of the items that have it."""

    name: str
    share: Estimate


class Writer(TypedDict):
    """A key, with the write units of its busiest second, by stream or insights."""

    key: str
    peak: float
    by: str


class Index(TypedDict):
    """An index.

    `share` is the part of the table's items, by DescribeTable. `read` and `written` are units in
    the window of the metrics, `read_days` the days of the last 30 on which it was read.
    """

    name: str
    kind: str
    partition: list[str]
    sort: list[str]
    projection: str
    items: int
    bytes: int
    share: float | None
    sparse: Estimate | None
    read: float | None
    written: float | None
    read_days: int | None
    top_key: str
    top_share: Estimate | None


class Pictures(TypedDict, total=False):
    """The data of the pictures; `minutes` are [epoch second, write units in this minute]."""

    key_map: KeyMap
    sizes: Sizes
    lorenz: Lorenz
    top: Top
    item_bytes: ItemBytes
    tags: list[Share]
    shapes: list[Share]
    attributes: list[Share]
    writers: list[Writer]
    minutes: list[list[float | None]]
    indexes: list[Index]
    candidates: list[CandidateFacts]


class ReportJson(TypedDict):
    """A report, with the worst findings first."""

    schema: Literal["keyhop-report/1"]
    table: Annotated[dict[str, Any], "the table as DescribeTable returns it"]
    at: Annotated[float | None, "epoch seconds"]
    spent: Spent
    estimates: dict[str, Estimate]
    findings: list[FindingJson]
    pictures: Pictures
    sources: Annotated[dict[str, str], "whether each source was read, in words"]
    not_assessed: Annotated[list[str], "what the report cannot assess"]
    show_keys: Annotated[str, "how keys are written"]
    options: dict[str, Any]


def to_json(report: Report) -> dict[str, Any]:
    """Return a ReportJson for json.dumps."""
    fields_ = plain(report)
    findings = [plain(finding) for finding in worst_first(report.findings)]
    for finding in findings:
        finding["price_of_knowing"] = finding.pop("price")
    return {"schema": SCHEMA, **fields_, "findings": findings}


def plain(value: Any) -> Any:
    """Return a value in the types of JSON."""
    if isinstance(value, Estimate):
        return plain(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(member) for member in value]
    return value


def pictures(facts: Facts) -> dict[str, Any]:
    """Return the Pictures of the facts."""
    data: dict[str, Any] = {}
    if isinstance(facts.stream, StreamFacts) and facts.stream.heat:
        data["key_map"] = key_map(facts.stream.heat)
    if isinstance(facts.metrics, MetricFacts) and facts.metrics.minutes:
        data["minutes"] = [[at, units] for at, units in facts.metrics.minutes]
    if isinstance(facts.sample, SampleFacts):
        data.update(_of_sample(facts, facts.sample))
    data["writers"] = _writers(facts)
    data["indexes"] = [_index(facts, index) for index in facts.table.indexes]
    data["candidates"] = plain(facts.candidates)
    return {name: picture for name, picture in data.items() if picture}


def key_map(heat: Iterable[tuple[float, int, float]]) -> KeyMap:
    """Make a KeyMap from (epoch second of a minute, place in 256ths, write units in it)."""
    cells = [*heat]
    began = min(at for at, _, _ in cells) // 60 * 60
    minutes = int((max(at for at, _, _ in cells) - began) // 60) + 1
    per_column = math.ceil(minutes / MINUTES)
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for at, place, units in cells:
        sums[int((at - began) // 60) // per_column, place * PLACES // 256] += units
    seconds = 60.0 * per_column
    return {
        "began": began,
        "column_seconds": seconds,
        "columns": math.ceil(minutes / per_column),
        "rows": PLACES,
        "cells": [[x, y, float(f"{n / seconds:.3g}")] for (x, y), n in sorted(sums.items()) if n],
    }


def _of_sample(facts: Facts, sample: SampleFacts) -> dict[str, Any]:
    data: dict[str, Any] = {
        "item_bytes": _item_bytes(sample),
        "tags": _shares({tag.name: tag.share for tag in kinds_among(sample.tags)}),
        "shapes": _shares(sample.shapes),
        "attributes": _shares(sample.coverage),
    }
    if sample.length or sample.unseen or sample.top:
        data["sizes"] = _sizes(facts, sample)
    if sample.lorenz:
        points = [[x, y] for x, y in sample.lorenz]
        data["lorenz"] = {"points": points, "gini": _json(sample.gini)}
    if sample.top:
        data["top"] = {
            "collections": plain(sample.top[:MOST_ROWS]),
            "biased": [*sample.biased],
            "exhaustive": sample.all_lengths,
        }
    return data


def _sizes(facts: Facts, sample: SampleFacts) -> dict[str, Any]:
    mean = facts.table.mean_item_bytes
    data: dict[str, Any] = {
        "quantiles": [
            {
                "quantile": quantile,
                "items": _json(items),
                "bytes": _json(items.scaled(mean)) if mean else None,
            }
            for quantile, items in sorted(sample.length.items())
        ],
        "beyond": [
            {"items": float(items), "share": _json(share)}
            for items, share in sorted(sample.beyond.items())
        ],
        "item_bytes": mean,
        "limit": float(COLLECTION_BYTES),
        "local_indexes": any(index.kind == "LSI" for index in facts.table.indexes),
    }
    if sample.top:
        largest = max(sample.top, key=lambda collection: collection.items.value)
        size = largest.bytes or (largest.items.scaled(mean) if mean else None)
        data["largest"] = {"quantile": 1.0, "items": _json(largest.items), "bytes": _json(size)}
    if sample.unseen:
        data["unseen"] = {"share": _json(sample.unseen), "items": sample.seen_largest}
    return data


def _item_bytes(sample: SampleFacts) -> dict[str, Any] | None:
    if not sample.item_bytes and sample.largest_item is None:
        return None
    return {
        "quantiles": [
            {"quantile": quantile, "bytes": _json(size)}
            for quantile, size in sorted(sample.item_bytes.items())
        ],
        "largest": sample.largest_item,
        "large": _json(sample.large),
    }


def _shares(shares: Mapping[str, Estimate]) -> list[dict[str, Any]]:
    ordered = sorted(shares.items(), key=lambda pair: (-pair[1].value, pair[0]))
    return [{"name": name, "share": _json(share)} for name, share in ordered[:MOST_ROWS]]


def _writers(facts: Facts) -> list[dict[str, Any]]:
    """Return the keys by their busiest second in the stream, or minute in Contributor Insights."""
    if isinstance(facts.stream, StreamFacts) and facts.stream.traffic:
        keys = sorted(facts.stream.traffic, key=lambda traffic: -traffic.peak)
        rows = [{"key": each.key, "peak": each.peak, "by": "stream"} for each in keys]
    elif isinstance(facts.insights, InsightFacts):
        busy = facts.insights.accessed.get(TABLE, ())
        # The units of Contributor Insights are 3 W + R a minute.
        rows = [{"key": hot.key, "peak": hot.units / 180, "by": "insights"} for hot in busy]
    else:
        rows = []
    return rows[:MOST_ROWS]


def _index(facts: Facts, index: IndexFacts) -> dict[str, Any]:
    metrics = facts.metrics if isinstance(facts.metrics, MetricFacts) else None
    sample = facts.sample.indexes.get(index.name) if isinstance(facts.sample, SampleFacts) else None
    return {
        "name": index.name,
        "kind": index.kind,
        "partition": list(index.partition),
        "sort": list(index.sort),
        "projection": index.projection,
        "items": index.items,
        "bytes": index.bytes,
        "share": index.items / facts.table.items if facts.table.items else None,
        "sparse": _json(sample.sparse) if sample else None,
        "read": metrics.consumed.get(("read", index.name)) if metrics else None,
        "written": metrics.consumed.get(("write", index.name)) if metrics else None,
        "read_days": metrics.read_days.get(index.name) if metrics else None,
        "top_key": sample.top_key if sample else "",
        "top_share": _json(sample.top_share) if sample else None,
    }


def _json(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else dict(estimate.to_json())
