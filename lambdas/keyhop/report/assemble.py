"""The way from the facts of the sources to a report: judged, advised and drawn. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from keyhop.report.estimate import Estimate
from keyhop.report.facts import Absent, Facts, SampleFacts, TableFacts
from keyhop.report.findings import LOOKED, Report, Spent
from keyhop.report.pages.document import pictures
from keyhop.report.rules.judge import judge, not_assessed


def assemble(facts: Facts, spent: Spent, show_keys: str, options: Mapping[str, Any]) -> Report:
    """Make the report.

    Args:
        facts: The facts of all sources.
        spent: The cost of reading all sources.
        show_keys: How keys are written.
        options: The settings of the report.
    """
    return Report(
        table=_table(facts.table),
        at=facts.at,
        spent=spent,
        estimates={name: estimate.to_json() for name, estimate in _estimates(facts.sample)},
        findings=tuple(judge(facts)),
        pictures=pictures(facts),
        sources=dict(_sources(facts)),
        not_assessed=not_assessed(facts),
        show_keys=show_keys,
        options=options,
    )


def _table(table: TableFacts) -> dict[str, Any]:
    return {
        "name": table.name,
        "arn": table.arn,
        "region": table.region,
        "partition_key": table.partition,
        "sort_key": table.sort,
        "items": table.items,
        "bytes": table.bytes,
        "billing": "on demand" if table.on_demand else "provisioned",
        "class": table.table_class,
        "indexes": [index.name for index in table.indexes],
        "stream": table.stream_view,
        "ttl": table.ttl,
    }


def _estimates(sample: SampleFacts | Absent) -> Iterator[tuple[str, Estimate]]:
    if isinstance(sample, Absent):
        return
    single = {
        "keys": sample.keys,
        "items_per_key": sample.mean_items,
        "share_in_unseen_collections": sample.unseen,
        "large_items": sample.large,
        "gini": sample.gini,
    }
    yield from ((name, estimate) for name, estimate in single.items() if estimate is not None)
    for quantile, estimate in sample.length.items():
        yield f"items_per_key_p{100 * quantile:g}", estimate
    for items, estimate in sample.beyond.items():
        yield f"share_in_collections_of_{items:g}", estimate
    for quantile, estimate in sample.item_bytes.items():
        yield f"item_bytes_p{100 * quantile:g}", estimate


def _sources(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield for each source that it was read, or why not, in words."""
    yield "control plane", LOOKED
    named = {
        "sample": facts.sample,
        "metrics": facts.metrics,
        "insights": facts.insights,
        "stream": facts.stream,
        "code": facts.code,
        "requests": facts.requests,
    }
    for name, source in named.items():
        if not isinstance(source, Absent):
            yield name, LOOKED
        else:
            yield name, f"{source.reason}; {source.remedy}" if source.remedy else source.reason
