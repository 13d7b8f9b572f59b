"""All rules of the report, and their findings. Pure.

Each rule has an id, a title, the sources that can answer, and the reason why it matters. A1 to A19
are anti-patterns of keys, H1 to H7 concern heat, I1 to I3 indexes, and E1 and E2 other mistakes.
"""

from keyhop.report.facts import Facts
from keyhop.report.findings import Finding, worst_first
from keyhop.report.rules import (
    code,
    collections,
    heat,
    index_keys,
    indexes,
    items,
    keys,
    placement,
    reads,
    requests,
    writes,
)
from keyhop.report.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "A1",
        "sequential ids",
        ("sample", "stream"),
        "Who hands them out is a bottleneck, and anybody can guess the next one.",
        keys.sequential_ids,
    ),
    Rule(
        "A2",
        "keys without a type tag",
        ("sample",),
        "Ids of two kinds of items may meet under one key.",
        keys.no_type_tag,
    ),
    Rule(
        "A3",
        "the key is the date",
        ("sample", "stream", "metrics"),
        "All that is written today goes to one key, which takes 1,000 write units a second.",
        keys.date_as_key,
    ),
    Rule(
        "A4",
        "Scan in production",
        ("metrics", "code"),
        "A Scan pays for all it passes, whatever it is looking for.",
        reads.scans,
    ),
    Rule(
        "A5",
        "a filter drops what was read",
        ("requests", "code"),
        "A filter is applied after the read is paid for.",
        reads.filters,
    ),
    Rule(
        "A6",
        "local secondary index",
        ("control plane", "sample", "requests"),
        "With an LSI no collection may exceed 10 GB, and none is split for heat.",
        collections.local_indexes,
    ),
    Rule(
        "A7",
        "an index for each access pattern",
        ("control plane", "metrics"),
        "Each index is written, stored and paid for, read or not.",
        indexes.index_per_pattern,
    ),
    Rule(
        "A8",
        "one counter item",
        ("stream", "insights"),
        "One item takes 1,000 write units a second at the most.",
        writes.one_counter,
    ),
    Rule(
        "A9",
        "constant key of an index",
        ("sample", "metrics"),
        "A hot key of an index refuses the table's own writes.",
        index_keys.constant_index_key,
    ),
    Rule(
        "A10",
        "read after write by an index",
        ("requests",),
        "A GSI lags behind: what was just written may not be there.",
        requests.read_after_write,
    ),
    Rule(
        "A11",
        "status changes without a condition",
        ("stream", "code"),
        "A late writer takes a status back, and nobody is told.",
        code.status_changes,
    ),
    Rule(
        "A12",
        "transactions for all",
        ("requests", "metrics"),
        "A transaction costs twice as much, and conflicts with others.",
        requests.transactions,
    ),
    Rule(
        "A13",
        "large items",
        ("sample",),
        "Each write pays for the whole item, and at 400 KB none is possible.",
        items.large_items,
    ),
    Rule(
        "A14",
        "leftovers of a batch are ignored",
        ("code",),
        "What a batch leaves undone is lost.",
        code.unprocessed,
    ),
    Rule(
        "A15",
        "collections without a bound",
        ("sample", "stream"),
        "One key gets ever larger, and with it what is read and where it is hot.",
        collections.unbounded,
    ),
    Rule(
        "A16",
        "time to live does not do its work",
        ("control plane", "sample"),
        "Items are deleted some days after they expire, or never if the value is wrong.",
        items.time_to_live,
    ),
    Rule(
        "A17",
        "consistent reads everywhere",
        ("requests", "metrics", "sample"),
        "They cost twice as much.",
        requests.consistent_reads,
    ),
    Rule(
        "A18",
        "no attribute names the kind",
        ("sample",),
        "Who reads by an index, an export or a stream has to parse keys.",
        keys.no_type_attribute,
    ),
    Rule(
        "A19",
        "too few partition keys",
        ("sample", "metrics", "control plane"),
        "A key takes 1,000 write and 3,000 read units a second: few keys bound the table.",
        collections.few_keys,
    ),
    Rule(
        "H1",
        "hot key",
        ("metrics", "insights", "stream"),
        "One key takes 1,000 write and 3,000 read units a second.",
        heat.hot_key,
    ),
    Rule(
        "H2",
        "a split cannot help",
        ("stream",),
        "What is always written at the end of one collection stays in one part of it.",
        writes.split_cannot_help,
    ),
    Rule(
        "H3",
        "an index holds writes back",
        ("metrics",),
        "A GSI that cannot keep up refuses the table's writes.",
        heat.back_pressure,
    ),
    Rule(
        "H4",
        "throttled, but not by keys",
        ("metrics",),
        "Capacity is short: another key would not help.",
        heat.not_the_keys,
    ),
    Rule(
        "H5",
        "a table that is cold",
        ("control plane",),
        "A table takes a sudden peak only as far as it is warm.",
        placement.cold_table,
    ),
    Rule(
        "H6",
        "load in the order of hashes",
        ("stream",),
        "All writes meet one partition at a time.",
        placement.in_hash_order,
    ),
    Rule(
        "H7",
        "uneven heat of partitions",
        ("stream",),
        "One partition works, the others wait.",
        placement.partition_heat,
    ),
    Rule(
        "I1",
        "an index that could be sparse",
        ("control plane", "sample"),
        "An index of all items pays for those that nobody looks for.",
        index_keys.might_be_sparse,
    ),
    Rule(
        "I2",
        "an index copies whole items",
        ("control plane", "metrics"),
        "Each write pays for the copy, too.",
        indexes.broad_projection,
    ),
    Rule(
        "I3",
        "writes cost more in indexes than in the table",
        ("metrics",),
        "Each GSI is charged for each write of an item that it holds.",
        indexes.amplified_writes,
    ),
    Rule(
        "E1",
        "numbers in sort keys without padding",
        ("control plane", "sample"),
        "As text, 10 comes before 9.",
        keys.unpadded_numbers,
    ),
    Rule(
        "E2",
        "constraint items without their primary",
        ("sample",),
        "A value stays taken that nobody has.",
        keys.orphaned_constraints,
    ),
)


def judge(facts: Facts) -> list[Finding]:
    """Return the findings of all rules, the worst first."""
    return worst_first([finding for rule in RULES for finding in rule(facts)])
