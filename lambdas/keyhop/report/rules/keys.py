"""Rules on how keys are written, from the sample and the stream: A1, A2, A3, A18, E1, E2."""

from collections.abc import Mapping

from keyhop.report.advice import (
    naming,
    peak_of,
    sharding_steps,
    shards_for,
    spreading,
    with_new_key,
)
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    Facts,
    IndexFacts,
    MetricFacts,
    SampleFacts,
    StreamFacts,
    TableFacts,
    kinds_among,
)
from keyhop.report.findings import Advice, Evidence, Finding, Severity
from keyhop.report.rules.rule import (
    DATED,
    HALF,
    KEY_WRITES,
    RECORDS,
    UNITS_OF_KEYS,
    clear,
    each_index,
    evidence,
    found,
    interval,
    more,
    needed,
    percent,
    rule,
    unknown,
    with_other_key,
)

SEQUENTIAL_DENSITY = 0.5
SHARED_NUMBERS = 1.1
"""The keys for each number above which the numbers are not ids."""
SEQUENTIAL_TAU = 0.7
MOST_NATURAL = 100
"""Fewer numbers are rooms, shops, months or shards: a counter of ids soon passes them."""
_NATURAL_NAMES = """
age bed bucket count day desk floor gate hour lane level locker month page partition port postcode
quantity rank room score seat shard shop size slot store table track version week year zip zipcode
"""
NATURAL_NAMES = frozenset(_NATURAL_NAMES.split())
UNTAGGED = 0.05
UNTAGGED_AT_MOST = 0.10
DATED_AT_LEAST = 0.85
DATED_TODAY = 0.5
TYPED = 0.95
UNPADDED = 0.05
ORPHANS = 0.02

FEWEST_ALIKE = 3
"""Collections that must share a word before it counts as a tag (sample/gather.py)."""
SAME_ENTITY = 0.5
MOST_ALIKE = 5
"""More words before keys of items with the same attributes are values, such as devices."""
_BOOKKEEPING = """
created createdat createdby entity entitytype expires expiresat id itemtype kind modified
modifiedat ttl type updated updatedat updatedby version
"""
BOOKKEEPING = frozenset(_BOOKKEEPING.split())
"""Attributes that items of any kind have, in lower case and without _."""
RARE_SHAPE = 0.01


@rule("A1", "sequential ids")
def sequential_ids(facts: Facts) -> Finding:
    """Apply A1: sequential ids.

    Dense numbers may be natural ones. Only their order in time shows a counter.
    """
    stream, sample = facts.stream, facts.sample
    tau = stream.tau if isinstance(stream, StreamFacts) else None
    in_order = tau is not None and tau.against(SEQUENTIAL_TAU) == "above"
    not_in_order = tau is not None and tau.against(SEQUENTIAL_TAU) == "below"
    signals: list[Evidence] = []
    if tau is not None and isinstance(stream, StreamFacts):
        signals.append(
            evidence(
                "stream",
                "rank correlation of new numeric keys with time (Kendall's tau)",
                tau,
                SEQUENTIAL_TAU,
                window=stream.seconds,
            )
        )
    if in_order:
        return found("low", "New keys are numbers that rise with time.", *signals, advice=_IDS)
    sample = needed(sample, "sample", UNITS_OF_KEYS)
    numbered, density = sample.numbered, sample.density
    if numbered is not None:
        signals.append(evidence("sample", "keys that end in a number", numbered, HALF))
        if numbered.against(HALF) == "below":
            return clear(f"{interval(numbered)} of the keys end in a number.", *signals)
    if density is not None:
        signals.append(
            evidence("sample", "keys / span of their numbers", density, SEQUENTIAL_DENSITY)
        )
    if numbered is None or density is None:
        summary = "The sample has too few keys with numbers."
        return _unknown(sample, summary, UNITS_OF_KEYS, *signals)
    if density.against(SHARED_NUMBERS) == "above":
        summary = "Keys end in numbers that several keys share, such as days or shards."
        return clear(summary, *signals)
    if density.against(SEQUENTIAL_DENSITY) == "below":
        summary = f"The numbers in keys have gaps: keys use {interval(density)} of their range."
        return clear(summary, *signals)
    if numbered.against(HALF) == "open" or density.against(SEQUENTIAL_DENSITY) == "open":
        summary = "It is not known whether the numbers in keys are sequential."
        return _unknown(sample, summary, UNITS_OF_KEYS, *signals)
    filled = percent(min(1.0, density.value))
    summary = f"Keys end in numbers that use {filled} of their range"
    if not_in_order:
        return clear(f"{summary}, but new keys do not come in order.", *signals)
    if isinstance(stream, StreamFacts) and stream.records >= RECORDS and not stream.inserts:
        return clear(f"{summary}, but no new keys are added.", *signals)
    if facts.table.partition.lower() in NATURAL_NAMES:
        name = facts.table.partition
        return clear(f'{summary}, and "{name}" is the name of a natural number.', *signals)
    if sample.keys is not None and sample.keys.high < MOST_NATURAL:
        return clear(f"{summary}, but they are too few to be ids.", *signals)
    return found("low", f"{summary}.", *signals, advice=_IDS)


_IDS = Advice(
    ("P9",),
    (
        "A counter that assigns ids is a bottleneck, and its ids can be guessed. Partitions are "
        "not affected, as keys are hashed.",
        "Give new items ids that each client can make and that sort by time, such as ULIDs.",
        "Keep the numbers if they mean something, such as rooms or shops.",
    ),
)


@rule("A2", "keys without a type tag")
def no_type_tag(facts: Facts) -> Finding:
    """Apply A2: keys without a type tag, if there are several kinds of items."""
    sample = facts.sample
    sample = needed(sample, "sample", UNITS_OF_KEYS)
    tagged = sample.tagged
    if tagged is None:
        return _unknown(sample, "The sample has too few keys.", UNITS_OF_KEYS)
    signal = evidence("sample", "keys with a type tag, such as ORDER#", tagged, UNTAGGED)
    if tagged.against(UNTAGGED) == "above":
        return clear(f"{interval(tagged)} of the keys have a type tag.", signal)
    if sample.sort_tagged is not None and sample.sort_tagged.against(TYPED) == "above":
        summary = f"{interval(sample.sort_tagged)} of the sort keys have a type tag."
        return clear(summary, signal)
    kinds = kinds_of(facts.table, sample.shapes)
    if kinds is None:
        summary = "The kinds of items in the table are not known."
        return _unknown(sample, summary, UNITS_OF_KEYS, signal)
    kinds_signal = Evidence("sample", "kinds of items, by their attributes", len(kinds), n=tagged.n)
    if len(kinds) == 1 and kinds[0] >= 1 - UNTAGGED:
        return clear("All items are of one kind, which needs no type tag.", signal, kinds_signal)
    if len(kinds) < 2 or tagged.value >= UNTAGGED or tagged.high >= UNTAGGED_AT_MOST:
        summary = "It is not known whether keys have type tags."
        return _unknown(sample, summary, UNITS_OF_KEYS, signal, kinds_signal)
    summary = (
        f"There are {len(kinds)} kinds of items, but only {interval(tagged)} of the keys name "
        "their kind."
    )
    steps = (
        "Begin each key with the kind of its item: ORDER#17, USER#ana. Then ids of two kinds "
        "cannot collide, and a query can select one kind.",
    )
    return found("low", summary, signal, kinds_signal, advice=with_new_key(facts, ("P1",), *steps))


@rule("A3", "the key is the date")
def date_as_key(facts: Facts) -> list[Finding]:
    """Apply A3 to the table and each GSI: the key is the date.

    It does no harm to an archive without new writes, or where each date has one item.
    """
    return each_index(
        facts,
        lambda index: _dated_index(facts, index),
        with_other_key(facts),
        with_table=lambda: _dated_table(facts),
    )


def _dated_index(facts: Facts, index: IndexFacts) -> Finding:
    sample = needed(facts.sample, "sample", UNITS_OF_KEYS)
    sampled = sample.indexes.get(index.name)
    dated = sampled.dated if sampled is not None else None
    if sampled is None or dated is None:
        return _unknown(sample, f"The sample has no item of {index.name}.", UNITS_OF_KEYS)
    signal = evidence("sample", f"entries of {index.name} whose key is only a date", dated, DATED)
    if dated.against(DATED) == "below":
        return clear(f"{interval(dated)} of the keys of {index.name} are only a date.", signal)
    if dated.value < DATED or dated.low < DATED_AT_LEAST:
        summary = f"It is not known whether the keys of {index.name} are only dates."
        return _unknown(sample, summary, UNITS_OF_KEYS, signal)
    summary = f"{interval(dated)} of the keys of {index.name} are only a date"
    if reason := _archive(facts, None):
        return found("info", f"{summary}, but {reason}: {_HARMLESS}.", signal)
    advice = Advice(
        ("P16", "P12"),
        (
            "Make a new index with a second attribute in its partition key that spreads a day over "
            "several keys, such as a bucket from 0 to 7 or the customer; readers query all keys.",
            "While an index key is hot, writes to the table itself are refused.",
        ),
    )
    summary = f"{summary}: all writes of a day go to one key."
    return found(_heat(facts), summary, signal, advice=advice)


def _dated_table(facts: Facts) -> Finding:
    stream, sample = facts.stream, facts.sample
    signals: list[Evidence] = []
    today = stream.date_share if isinstance(stream, StreamFacts) else None
    if today is not None and isinstance(stream, StreamFacts):
        what = "inserts whose partition key is today's date"
        signals.append(evidence("stream", what, today, DATED_TODAY, window=stream.seconds))
        if today.against(DATED_TODAY) == "above":
            summary = f"{interval(today)} of the inserts go to today's key."
            return found(_heat(facts), summary, *signals, advice=_spread_dates(facts))
    sample = needed(sample, "sample", UNITS_OF_KEYS)
    dated = sample.dated
    if dated is None:
        return _unknown(sample, "The sample has too few keys.", UNITS_OF_KEYS, *signals)
    signals.append(evidence("sample", "keys that are only a date", dated, DATED))
    if dated.against(DATED) == "below":
        return clear(f"{interval(dated)} of the keys are only a date.", *signals)
    if dated.value < DATED or dated.low < DATED_AT_LEAST:
        summary = "It is not known whether keys are only dates."
        return _unknown(sample, summary, UNITS_OF_KEYS, *signals)
    summary = f"{interval(dated)} of the keys are only a date"
    if facts.table.sort is None:
        return clear(f"{summary}, and each date has one item.", *signals)
    if reason := _archive(facts, today):
        return found("info", f"{summary}, but {reason}: {_HARMLESS}.", *signals)
    summary = f"{summary}: each day has one key."
    return found(_heat(facts), summary, *signals, advice=_spread_dates(facts))


_HARMLESS = "an archive takes no harm from it"


def _archive(facts: Facts, today: Estimate | None) -> str:
    """Return why nothing is written to today's key, or "" if something may be."""
    stream, metrics = facts.stream, facts.metrics
    if today is not None and today.against(DATED_TODAY) == "below":
        return "new items do not go to today's key"
    if isinstance(stream, StreamFacts) and stream.inserts == 0 and stream.seconds > 0:
        return "nothing was inserted"
    if isinstance(metrics, MetricFacts) and not metrics.consumed.get(("write", TABLE)):
        return "nothing was written" if metrics.consumed or metrics.calls else ""
    return ""


def _heat(facts: Facts) -> Severity:
    peak = peak_of(facts)
    return "medium" if peak is not None and peak >= HALF * KEY_WRITES else "low"


def _spread_dates(facts: Facts) -> Advice:
    steps = [
        "Add something to the key that spreads a day over several keys: a number, as in "
        "2026-11-22#3, or the id of the device."
    ]
    command = ""
    if (peak := peak_of(facts)) is not None:
        shards = shards_for(peak)
        steps += sharding_steps(shards)
        command = spreading(facts, shards.roomy) if shards.roomy > 1 else ""
    return with_new_key(facts, ("P17",), *steps, command=command)


@rule("A18", "no attribute names the kind")
def no_type_attribute(facts: Facts) -> Finding:
    """Apply A18: no attribute names the kind.

    People read the kind in a tag, but programs need an attribute.
    """
    sample = facts.sample
    sample = needed(sample, "sample", UNITS_OF_KEYS)
    typed = sample.typed
    tags = [tag for tag in sample.tags if tag.share.value >= RARE_SHAPE]
    if typed is None:
        if len(tags) < 2 and sample.all_items and sample.items_read:
            summary = "All items have the same tag, so no attribute is needed for their kind."
            return clear(summary)
        return _unknown(sample, "The sample has too few items.", UNITS_OF_KEYS)
    name = sample.type_name or "Type"
    what = f'items with an attribute that names their kind ("{name}")'
    signal = evidence("sample", what, typed, TYPED)
    if typed.against(TYPED) == "above":
        return clear(f"{interval(typed)} of the items name their kind in {name}.", signal)
    kinds = kinds_of(facts.table, sample.shapes)
    alike = [share for share in sample.shapes.values() if share.value >= 1 - UNTAGGED]
    are_values = len(tags) > MOST_ALIKE or bool(tags and not any(tag.prefix for tag in tags))
    is_one_kind = kinds is not None and len(kinds) == 1
    if are_values and (alike or is_one_kind):
        if max(kinds or [0.0]) < 1 - UNTAGGED:
            summary = "It is not known whether all items have the same attributes."
            return _unknown(sample, summary, UNITS_OF_KEYS, signal)
        summary = "All items have the same attributes, and the words in keys are values, not kinds."
        return clear(summary, signal)
    if len(tags) >= 2 and not any(tag.share.value < TYPED for tag in tags):
        if any(tag.share.low < TYPED for tag in tags):
            summary = "It is not known whether all items have the same tags."
            return _unknown(sample, summary, UNITS_OF_KEYS, signal)
        return clear("All items have the same tags, so they are of one kind.", signal)
    if len(tags) < 2:
        are_seen = sample.keys_read >= FEWEST_ALIKE and sample.most_unrepresented < UNTAGGED_AT_MOST
        if tags and tags[0].share.low >= 1 - UNTAGGED:
            return clear(f"All items are of one kind, {tags[0].name}.", signal)
        if are_seen and kinds is not None and len(kinds) == 1 and kinds[0] >= 1 - UNTAGGED:
            return clear("All items are of one kind, as their attributes show.", signal)
        if not are_seen or kinds is None or len(kinds) < 2:
            return _unknown(sample, "The sample has fewer than two tags.", UNITS_OF_KEYS, signal)
    if typed.against(TYPED) == "open":
        summary = f"It is not known whether all items have {name}."
        return _unknown(sample, summary, UNITS_OF_KEYS, signal)
    count = f"Tags show {len(tags)} kinds of items"
    if len(tags) < 2:
        count = f"Attributes show {len(kinds or ())} kinds of items"
    summary = f"{count}, but only {interval(typed)} of the items name their kind in {name}."
    shown = kinds_among(tags)
    advice = Advice(
        ("P1",),
        (
            f"Write {name} into each new item, with the kind that its key begins with.",
            "Set it once in all existing items. Then a program that reads an index, an export or a "
            "stream knows the kind of an item without parsing its key.",
            "The command, if there is one, does not change items that have the attribute already. "
            "Spell its value as those items do.",
        ),
        "" if facts.table.sort or not shown else naming(facts.table.name, name, shown[0]),
    )
    return found("low", summary, signal, advice=advice)


@rule("E1", "numbers in sort keys without padding")
def unpadded_numbers(facts: Facts) -> list[Finding]:
    """Apply E1 to the table and each GSI: as text, 10 comes before 9."""
    return each_index(
        facts, lambda index: _unpadded_index(facts, index), with_table=lambda: _unpadded(facts)
    )


def _unpadded_index(facts: Facts, index: IndexFacts) -> Finding:
    if not any(facts.table.types.get(name) == "S" for name in index.sort):
        return clear(f"{index.name} has no sort key that is a string.")
    sample = needed(facts.sample, "sample", UNITS_OF_KEYS)
    sampled = sample.indexes.get(index.name)
    advice = Advice(
        ("P11",),
        (
            "Pad numbers with zeros to one width (0009, 0010), or make a new index whose sort key "
            "is a number. In a key of several attributes, each is sorted separately.",
        ),
    )
    return _uneven(sample, sampled.unpadded if sampled is not None else None, advice)


def _unpadded(facts: Facts) -> Finding:
    table, sample = facts.table, facts.sample
    if table.sort is None:
        return clear("The table has no sort key.")
    if table.types.get(table.sort) == "N":
        return clear("The sort key is a number, so it sorts as a number.")
    sample = needed(sample, "sample", UNITS_OF_KEYS)
    steps = ("Pad numbers with zeros to one width (0009, 0010), or make the sort key a number.",)
    return _uneven(sample, sample.unpadded, with_new_key(facts, ("P11",), *steps))


def _uneven(sample: SampleFacts, unpadded: Estimate | None, advice: Advice) -> Finding:
    if unpadded is None:
        return _unknown(sample, "The sample has too few sort keys.", UNITS_OF_KEYS)
    signal = evidence("sample", "sort keys with numbers of several widths", unpadded, UNPADDED)
    side = unpadded.against(UNPADDED)
    if side == "below":
        summary = f"{interval(unpadded)} of the sort keys contain numbers of different widths."
        return clear(summary, signal)
    if side == "open":
        summary = "It is not known whether numbers are padded."
        return _unknown(sample, summary, UNITS_OF_KEYS, signal)
    summary = (
        f"{interval(unpadded)} of the sort keys contain numbers as text, with different widths."
    )
    return found("low", summary, signal, advice=advice)


@rule("E2", "constraint items without their primary")
def orphaned_constraints(facts: Facts) -> Finding:
    """Apply E2: a constraint item without its primary blocks its value."""
    sample = facts.sample
    sample = needed(sample, "sample", UNITS_OF_KEYS)
    if (orphans := sample.orphans) is None:
        return _unknown(sample, "The sample has too few constraint items.", UNITS_OF_KEYS)
    signal = evidence("sample", "constraint items without their primary", orphans, ORPHANS)
    side = orphans.against(ORPHANS)
    if side == "below":
        return clear(f"{interval(orphans)} of the constraint items have no primary.", signal)
    if side == "open":
        summary = "It is not known whether constraint items have their primaries."
        return _unknown(sample, summary, UNITS_OF_KEYS, signal)
    advice = Advice(
        ("P2",),
        (
            "Write and delete an item and its constraint items in one transaction.",
            "List the constraint items without a primary, check each, and delete them under a "
            "condition.",
        ),
    )
    summary = f"{interval(orphans)} of the constraint items have no primary."
    return found("low", summary, signal, advice=advice)


def _unknown(sample: SampleFacts, summary: str, rru: float, *signals: Evidence) -> Finding:
    return unknown(summary, more(sample, rru), *signals)


def kinds_of(table: TableFacts, shapes: Mapping[str, Estimate]) -> list[float] | None:
    """Return the low end of each kind's share of the items, or None if no shape was seen.

    Shapes that share attributes are one kind. Keys of the table and of indexes do not count, as all
    kinds have them.
    """
    keys = {"", table.partition, table.sort or ""}
    for index in table.indexes:
        keys |= {*index.partition, *index.sort}
    kinds: list[tuple[list[frozenset[str]], float]] = []
    for names, share in shapes.items():
        if share.value < RARE_SHAPE:
            continue
        attributes = frozenset(name.strip() for name in names.split(",")) - keys
        attributes = frozenset(
            name for name in attributes if name.lower().replace("_", "") not in BOOKKEEPING
        )
        alike = [kind for kind in kinds if any(_alike(attributes, shape) for shape in kind[0])]
        kinds = [kind for kind in kinds if kind not in alike]
        joined = [attributes, *(shape for kind in alike for shape in kind[0])]
        kinds.append((joined, share.low + sum(kind[1] for kind in alike)))
    return [low for _, low in kinds] or None


def _alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two shapes are of one kind.

    Items of one kind differ by optional attributes, so both have most attributes of the smaller.
    """
    if not first or not second:
        return not first and not second
    return len(first & second) > SAME_ENTITY * min(len(first), len(second))
