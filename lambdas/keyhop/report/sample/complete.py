"""Shares and quantiles as counts, without an interval, where everything was read. Pure.

Shares of partition keys are counts if every key has been found, shares of items only if every item
was read and observed. They do not include writes during the read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from keyhop.report.estimate import Estimate
from keyhop.report.facts import IndexSample, SampleFacts, TtlFacts
from keyhop.report.sample.rows import Row, SegmentRow

METHOD = "complete count"

K = TypeVar("K")


def counted(facts: SampleFacts, rows: Iterable[Row]) -> SampleFacts:
    """Return the facts without the intervals of the figures that were counted."""
    collections = (
        collection for row in rows if isinstance(row, SegmentRow) for collection in row.collections
    )
    if facts.all_keys:
        facts = replace(
            facts,
            keys=_exact(facts.keys),
            dated=_exact(facts.dated),
            tagged=_exact(facts.tagged),
            numbered=_exact(facts.numbered),
            density=_exact(facts.density),
        )
    if not facts.all_items or not all(
        collection.whole and len(collection.observations) == collection.items
        for collection in collections
    ):
        return facts
    ttl = facts.ttl
    return replace(
        facts,
        length=_all(facts.length),
        item_bytes=_all(facts.item_bytes),
        large=_exact(facts.large),
        coverage=_all(facts.coverage),
        tags=tuple(replace(tag, share=_known(tag.share)) for tag in facts.tags),
        shapes=_all(facts.shapes),
        item_mean=_exact(facts.item_mean),
        unrepresented=_exact(facts.unrepresented),
        typed=_exact(facts.typed),
        unpadded=_exact(facts.unpadded),
        orphans=_exact(facts.orphans),
        ttl=ttl
        and TtlFacts(
            _known(ttl.expired),
            _known(ttl.wrong_type),
            _known(ttl.milliseconds),
            _known(ttl.missing),
        ),
        indexes={name: _index(sampled) for name, sampled in facts.indexes.items()},
    )


def _known(estimate: Estimate) -> Estimate:
    return Estimate.exactly(estimate.value, estimate.n, METHOD)


def _exact(estimate: Estimate | None) -> Estimate | None:
    return None if estimate is None else _known(estimate)


def _all(estimates: Mapping[K, Estimate]) -> dict[K, Estimate]:
    return {name: _known(estimate) for name, estimate in estimates.items()}


def _index(sampled: IndexSample) -> IndexSample:
    return replace(sampled, top_share=_exact(sampled.top_share), sparse=_exact(sampled.sparse))
