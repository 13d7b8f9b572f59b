"""What the page's pictures are drawn from, as plain JSON by name; made of the facts. Pure.

A picture whose data nobody has is left out. Estimates are as Estimate.to_json has them.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    CandidateFacts,
    Facts,
    IndexFacts,
    InsightFacts,
    MetricFacts,
    SampleFacts,
    StreamFacts,
)

PLACES = 128
"""Rows of the key map; each is 1/128 of the hash space."""
MINUTES = 180
"""Columns of the key map, at most: with more minutes each is several of them."""
MOST_ROWS = 12
"""Of a table or a list of bars: more are not read."""
COLLECTION_LIMIT = 10 * 1024**3
"""Bytes of a collection, with its part of the local indexes: DynamoDB's limit where there are any.
"""


class EstimateJson(TypedDict):
    """A figure with its interval, which holds the truth in `level` of all samples."""

    value: float | None
    low: float | None
    high: Annotated[float | None, "null: at least"]
    level: float | None
    n: Annotated[int, "observations"]
    method: str


class KeyMap(TypedDict):
    """Hash place by time. cells: [column, row of 128, write units a second]."""

    began: float
    column_seconds: float
    columns: int
    rows: int
    cells: list[list[float | None]]


class Quantile(TypedDict):
    """quantile: .5, .9, .99. bytes: without indexes; null where the table does not tell."""

    quantile: float
    items: NotRequired[EstimateJson]
    bytes: EstimateJson | None


class Unseen(TypedDict):
    """Share of all items that is in collections of more than `items` items."""

    share: EstimateJson
    items: float | None


class Sizes(TypedDict):
    """Of collections. limit: bytes, with local indexes. local_indexes: whether there are any."""

    quantiles: list[Quantile]
    largest: NotRequired[Quantile]
    unseen: NotRequired[Unseen]
    beyond: list[Unseen]
    item_bytes: float | None
    limit: float
    local_indexes: bool


class Lorenz(TypedDict):
    """points: [share of keys, share of items], the smallest collections first."""

    points: list[list[float | None]]
    gini: EstimateJson | None


class TopCollection(TypedDict):
    """key: as it may be shown. by: the draw that found it."""

    key: str
    items: EstimateJson
    bytes: EstimateJson | None
    place: float | None
    by: str


class Top(TypedDict):
    """The largest collections that are known.

    biased: the sources that find giants. exhaustive: whether the length of every collection was
    counted or estimated. If neither holds, the list may lack the largest.
    """

    collections: list[TopCollection]
    biased: list[str]
    exhaustive: bool


class ItemBytes(TypedDict):
    """Of single items. large: share of those of 350 KB or more."""

    quantiles: list[Quantile]
    largest: float | None
    large: EstimateJson | None


class Share(TypedDict):
    """A tag, a shape or an attribute, and the share of items that have it."""

    name: str
    share: EstimateJson


class Writer(TypedDict):
    """A key, and the write units of its busiest second; by: stream or insights."""

    key: str
    peak: float
    by: str


class Index(TypedDict):
    """share: of the table's items, by DescribeTable. read, written: units in the window of the
    metrics; read_days: of the last 30, on which it was read."""

    name: str
    kind: str
    partition: str
    sort: str | None
    projection: str
    items: int
    bytes: int
    share: float | None
    sparse: EstimateJson | None
    read: float | None
    written: float | None
    read_days: int | None
    top_key: str
    top_share: EstimateJson | None


class Candidate(TypedDict):
    """A candidate key; money in dollars, today and advised a month."""

    template: str
    coverage: EstimateJson
    largest: EstimateJson
    effective: EstimateJson
    distinct: EstimateJson
    monotonicity: EstimateJson | None
    throttled: EstimateJson | None
    peak: float | None
    reads: dict[str, float | None]
    migration: float | None
    today: float | None
    advised: float | None


class Pictures(TypedDict, total=False):
    """By name. minutes: write units a minute, [epoch second, units]."""

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
    candidates: list[Candidate]


def pictures(facts: Facts) -> dict[str, Any]:
    """A Pictures of all that the facts hold."""
    found: dict[str, Any] = {}
    if isinstance(facts.stream, StreamFacts) and facts.stream.heat:
        found["key_map"] = key_map(facts.stream.heat)
    if isinstance(facts.metrics, MetricFacts) and facts.metrics.minutes:
        found["minutes"] = [[at, units] for at, units in facts.metrics.minutes]
    if isinstance(facts.sample, SampleFacts):
        found.update(_of_sample(facts, facts.sample))
    found["writers"] = _writers(facts)
    found["indexes"] = [_index(facts, one) for one in facts.table.indexes]
    found["candidates"] = [_candidate(one) for one in facts.candidates]
    return {name: one for name, one in found.items() if one}


def key_map(heat: Iterable[tuple[float, int, float]]) -> KeyMap:
    """Of (epoch second of a minute, place in 256ths, write units in it)."""
    cells = [*heat]
    began = min(at for at, _, _ in cells) // 60 * 60
    minutes = int((max(at for at, _, _ in cells) - began) // 60) + 1
    each = math.ceil(minutes / MINUTES)
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for at, place, units in cells:
        sums[int((at - began) // 60) // each, place * PLACES // 256] += units
    seconds = 60.0 * each
    return {
        "began": began,
        "column_seconds": seconds,
        "columns": math.ceil(minutes / each),
        "rows": PLACES,
        "cells": [[x, y, float(f"{n / seconds:.3g}")] for (x, y), n in sorted(sums.items()) if n],
    }


def _of_sample(facts: Facts, sample: SampleFacts) -> dict[str, Any]:
    found: dict[str, Any] = {
        "item_bytes": _item_bytes(sample),
        "tags": _shares({tag.name: tag.share for tag in sample.tags}),
        "shapes": _shares(sample.shapes),
        "attributes": _shares(sample.coverage),
    }
    if sample.length or sample.unseen or sample.top:
        found["sizes"] = _sizes(facts, sample)
    if sample.lorenz:
        points = [[x, y] for x, y in sample.lorenz]
        found["lorenz"] = {"points": points, "gini": _json(sample.gini)}
    if sample.top:
        found["top"] = {
            "collections": [
                {
                    "key": one.key,
                    "items": _json(one.items),
                    "bytes": _json(one.bytes),
                    "place": one.place,
                    "by": one.by,
                }
                for one in sample.top[:MOST_ROWS]
            ],
            "biased": [*sample.biased],
            "exhaustive": sample.all_lengths,
        }
    return found


def _sizes(facts: Facts, sample: SampleFacts) -> dict[str, Any]:
    mean = facts.table.mean_item_bytes
    found: dict[str, Any] = {
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
        "limit": float(COLLECTION_LIMIT),
        "local_indexes": any(one.kind == "LSI" for one in facts.table.indexes),
    }
    if sample.top:
        largest = max(sample.top, key=lambda one: one.items.value)
        size = largest.bytes or (largest.items.scaled(mean) if mean else None)
        found["largest"] = {"quantile": 1.0, "items": _json(largest.items), "bytes": _json(size)}
    if sample.unseen:
        found["unseen"] = {"share": _json(sample.unseen), "items": sample.seen_largest}
    return found


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
    most = sorted(shares.items(), key=lambda one: (-one[1].value, one[0]))
    return [{"name": name, "share": _json(share)} for name, share in most[:MOST_ROWS]]


def _writers(facts: Facts) -> list[dict[str, Any]]:
    """Of the stream, by second; else what Contributor Insights says of the busiest minute."""
    if isinstance(facts.stream, StreamFacts) and facts.stream.traffic:
        keys = sorted(facts.stream.traffic, key=lambda one: -one.peak)
        rows = [{"key": one.key, "peak": one.peak, "by": "stream"} for one in keys]
    elif isinstance(facts.insights, InsightFacts):
        busy = facts.insights.accessed.get(TABLE, ())
        # Insights' units are 3 W + R a minute.
        rows = [{"key": one.key, "peak": one.units / 180, "by": "insights"} for one in busy]
    else:
        rows = []
    return rows[:MOST_ROWS]


def _index(facts: Facts, index: IndexFacts) -> dict[str, Any]:
    metrics = facts.metrics if isinstance(facts.metrics, MetricFacts) else None
    sample = facts.sample.indexes.get(index.name) if isinstance(facts.sample, SampleFacts) else None
    return {
        "name": index.name,
        "kind": index.kind,
        "partition": index.partition,
        "sort": index.sort,
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


def _candidate(one: CandidateFacts) -> dict[str, Any]:
    return {
        "template": one.template,
        "coverage": _json(one.coverage),
        "largest": _json(one.largest),
        "effective": _json(one.effective),
        "distinct": _json(one.distinct),
        "monotonicity": _json(one.monotonicity),
        "throttled": _json(one.throttled),
        "peak": one.peak,
        "reads": {**one.reads},
        "migration": one.migration,
        "today": one.today,
        "advised": one.advised,
    }


def _json(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else dict(estimate.to_json())
