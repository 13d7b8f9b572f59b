"""Tests of the facts that are gathered from the rows of a sample."""

import random
from dataclasses import replace

import pytest
from keyhop.report.estimate import Estimate
from keyhop.report.facts import SampleFacts
from keyhop.report.facts_json import from_json, to_json
from keyhop.report.forms import KeyForm
from keyhop.report.sample.drawing import Population
from keyhop.report.sample.gather import gather
from keyhop.report.sample.rows import (
    CollectionRow,
    DrawRow,
    Observation,
    SegmentRow,
    from_key,
    is_draw,
    to_key,
)


def collection(
    number: int, items: int = 3, key: str = "USER#{}", **observed: object
) -> CollectionRow:
    return CollectionRow(
        key=f"k{number}",
        form=KeyForm.of({"S": key.format(number)}),
        items=items,
        whole=True,
        observations=tuple(
            Observation(**{"bytes": 100, "names": ("pk", "sk"), **observed})  # type: ignore[arg-type]
            for _ in range(items)
        ),
    )


def segments(rows: list[CollectionRow]) -> list[SegmentRow]:
    return [SegmentRow(at, True, tuple(rows[at : at + 8])) for at in range(0, len(rows), 8)]


def facts_of(rows: list[CollectionRow], total: int = 1_000, items: int = 0, **more: object):
    """Return the facts of rows from segments of eight, which are some of a total number."""
    return gather(segments(rows), Population(total, items, **more))  # type: ignore[arg-type]


def test_keys_are_counted_in_all_segments_and_lengths_in_the_probed_ones() -> None:
    cut = CollectionRow("c", KeyForm(), 2, whole=False)
    counted = SegmentRow(0, False, tuple([cut] * 8))
    facts = gather([counted, *segments([collection(n) for n in range(80)])], Population(110, 0))
    assert facts.keys.value == 880
    assert facts.length[0.5].value == 3
    assert facts.length[0.5].high == 3


def test_all_segments_together_are_the_whole_table() -> None:
    facts = facts_of([collection(n) for n in range(16)], total=2, items=48)
    assert facts.keys == Estimate.exactly(16, 16, "complete count")
    assert facts.all_items
    assert facts.unseen.high == 0


def test_a_sample_with_a_partly_read_collection_does_not_have_all_items() -> None:
    rows = [collection(n) for n in range(15)]
    facts = facts_of([*rows, CollectionRow("c", KeyForm(), 2, whole=False)], total=2, items=48)
    assert facts.all_keys
    assert not facts.all_items
    assert facts.unseen is None


@pytest.mark.parametrize(
    ("key", "share"), [("2026-01-{:02}", 1.0), ("DATE#2026-01-{:02}", 1.0), ("USER#{}", 0.0)]
)
def test_keys_that_are_dates(key: str, share: float) -> None:
    facts = facts_of([collection(1 + n % 28, key=key) for n in range(64)])
    assert facts.dated.value == share


def test_dates_with_a_place_are_not_dates_alone() -> None:
    places = ["JFK", "LAX", "ORD", "ATL", "SFO"]
    rows = [collection(n, key=places[n % 5] + "#2026-01-01") for n in range(64)]
    assert facts_of(rows).dated.value == 0


def test_a_word_of_one_key_is_not_reported_as_a_tag() -> None:
    facts = facts_of([*[collection(n) for n in range(40)], collection(99, key="canary#{}")])
    assert [tag.name for tag in facts.tags] == ["USER"]
    assert facts.tagged.value == 40 / 41


def test_sequential_numbers_are_dense_and_random_ones_are_not() -> None:
    chance = random.Random(1)
    dense = facts_of([collection(n) for n in chance.sample(range(8_000), 64)])
    assert dense.density.low > 0.5
    sparse = facts_of([collection(chance.randrange(10**9)) for _ in range(64)])
    assert sparse.density.high < 0.5


def test_unpadded_numbers_have_several_widths() -> None:
    rows = [collection(n, widths={"": (("ITEM", 1 + n % 3),)}) for n in range(40)]
    assert facts_of(rows).unpadded.value == 1
    padded = facts_of([collection(n, widths={"": (("", -3 if n % 2 else 3),)}) for n in range(40)])
    assert padded.unpadded.value == 0


@pytest.mark.parametrize(("size", "share"), [(350 * 1024, 1), (350 * 1024 - 1, 0)])
def test_items_are_large_from_350_kilobytes_on(size: int, share: float) -> None:
    assert facts_of([collection(n, bytes=size) for n in range(40)]).large.value == share


def test_the_mean_size_allows_for_items_that_the_sample_does_not_represent() -> None:
    rows = [collection(n) for n in range(40)]
    complete = facts_of(rows, total=5, items=120).item_mean
    assert (complete.low, complete.high) == (100, 100)
    partial = facts_of(rows, total=10, items=2_400).item_mean
    assert partial.low < 20
    assert partial.high > 300_000
    described = facts_of(rows, total=10, items=2_400, bytes=2_400 * 400.0).item_mean
    assert described.high == 500


def test_numbers_next_to_many_different_words_are_parts_of_names() -> None:
    def unpadded_share(words: int) -> float:
        places = [f"head/word{number % words}" for number in range(80)]
        rows = [
            collection(n, widths={"": ((place, 1 + n // words % 2),)})
            for n, place in enumerate(places)
        ]
        return facts_of(rows).unpadded.value

    assert unpadded_share(5) == 1
    assert unpadded_share(6) == 0


def test_an_attribute_with_one_value_for_each_kind_is_the_type_attribute() -> None:
    def rows(word: str, *more: CollectionRow) -> list[CollectionRow]:
        names = ("art", "pk")
        users = [collection(n, names=names, words={"art": "u"}) for n in range(20)]
        orders = [
            collection(n, key="ORDER#{}", names=names, words={"art": word}) for n in range(20)
        ]
        return [*users, *orders, *more]

    assert facts_of(rows("o")).type_name == "art"
    assert facts_of(rows("o")).kind_names == ("art",)
    assert facts_of(rows("u")).type_name == ""
    mixed = [collection(n, names=("art", "pk"), words={"art": f"x{n}"}) for n in range(20)]
    assert facts_of(rows("o", *mixed)).type_name == ""


def test_sort_keys_identify_the_kind_if_they_have_several_tags() -> None:
    rows = [collection(n, tag="ORDER" if n % 2 else "PROFILE") for n in range(40)]
    assert facts_of(rows).sort_tagged.value == 1
    assert facts_of(rows[1::2]).sort_tagged.value == 0


def test_the_type_attribute_is_found_if_three_of_four_items_have_it() -> None:
    rows = [collection(n, names=("pk", "Type") if n % 4 else ("pk",)) for n in range(40)]
    facts = facts_of(rows)
    assert facts.type_name == "Type"
    assert facts.typed.value == 0.75


def test_ttl() -> None:
    values = [None, 30.0, -3.0, "ms", "type"]
    rows = [collection(n, ttl=values[n % 5]) for n in range(100)]
    ttl = facts_of(rows, ttl="expires").ttl
    shares = (ttl.expired, ttl.milliseconds, ttl.wrong_type, ttl.missing)
    assert [share.value for share in shares] == [0.25, 0.25, 0.25, 0.2]


def draws(counts: list[dict[str, int]], total: int, is_whole: bool = True) -> list[DrawRow]:
    """Return segments of the index `by`, with the number of entries by key for each."""
    return [DrawRow("by", at, total, is_whole, keys, {"e": 1}) for at, keys in enumerate(counts)]


def test_an_index_finds_a_giant_that_no_segment_has() -> None:
    counts = [{"giant": 8, f"k{n}": 6, f"k{n + 50}": 6} for n in range(40)]
    draw_rows = draws(counts, total=500)
    facts = gather(
        [*segments([collection(n) for n in range(64)]), *draw_rows],
        Population(1_000, 10_000, indexes={"by": 10_000}),
    )
    assert facts.biased == ("GSI by",)
    assert facts.top[0].key == "giant"
    assert facts.top[0].by == "GSI by"
    assert facts.top[0].items.low <= 4_000 <= facts.top[0].items.high


def test_an_index_is_not_used_if_a_large_segment_was_not_read_to_its_end() -> None:
    draw_rows = draws([{f"k{n}": 2} for n in range(40)], total=500)
    draw_rows += draws([{"giant": 60}], total=500, is_whole=False)
    facts = gather(draw_rows, Population(1_000, 10_000, indexes={"by": 10_000}))
    assert facts.biased == ()


def partly_read(length: float, size: int) -> CollectionRow:
    """Return a row of a collection of this length, of which two items of this size were read."""
    estimate = Estimate(length, length, length, 2, "windows")
    return replace(collection(0, items=2, bytes=size), whole=False, length=estimate)


def test_the_size_of_a_collection_is_its_items_if_all_were_read() -> None:
    facts = facts_of([collection(1, items=3), collection(2, items=2)], items=5, bytes=500.0)
    assert facts.top[0].bytes == Estimate.exactly(300.0, 3, "counted")


def test_no_collection_is_larger_than_the_table() -> None:
    """The two items that were read are large, and nearly all others are small."""
    facts = facts_of([partly_read(1_000, size=20_000)], items=2_000, bytes=2e6)
    size = facts.top[0].bytes
    assert size.low == 0
    assert size.value == 1e6
    assert 2e6 <= size.high <= 3e6


def test_a_collection_may_have_all_bytes_that_were_not_read() -> None:
    """The two items that were read are small, and nearly all others are large."""
    facts = facts_of([partly_read(1_000, size=100)], items=2_000, bytes=2e7)
    size = facts.top[0].bytes
    assert size.value == 1e5
    assert size.high >= 2e7


@pytest.mark.parametrize(("items", "table_size"), [(0, 0.0), (100, 1e4)])
def test_an_outdated_table_size_does_not_limit_a_collection(items: int, table_size: float) -> None:
    size = facts_of([partly_read(1_000, size=5_000)], items=items, bytes=table_size).top[0].bytes
    assert size.value == 5e6
    assert size.high == 1_000 * 400 * 1024


@pytest.mark.parametrize(
    ("items", "times", "share"),
    [
        (100, (60.0, 6.0), 0.5),
        (99, (60.0, 6.0), 0.0),
        (100, (59.9, 5.9), 0.0),
        (100, (60.0, 6.1), 0.0),
        (100, (60.0, -1.0), 0.5),
        (100, (60.0, -1.1), 0.0),
        (100, None, 0.0),
    ],
)
def test_collections_that_grow(items: int, times: tuple[float, float] | None, share: float) -> None:
    rows = [replace(collection(n, items), times=times if n % 2 else None) for n in range(8)]
    assert facts_of(rows, total=1, items=8 * items).growing.value == share


def test_constraints_with_primaries_in_another_table_are_not_orphans() -> None:
    def rows(tag: str, orphans: int) -> list[CollectionRow]:
        keys = [collection(n, 1, key=f"{tag}#{{}}") for n in range(20)]
        return [replace(row, orphan=n < orphans) for n, row in enumerate(keys)]

    many = facts_of(rows("EMAIL", 18)).orphans
    assert (many.value, many.n) == (0.9, 20)
    assert facts_of(rows("EMAIL", 19)).orphans is None
    both = facts_of([*rows("EMAIL", 20), *rows("PHONE", 1)]).orphans
    assert (both.value, both.n) == (0.05, 20)


def test_rows_and_facts_are_unchanged_after_json() -> None:
    first = [replace(collection(n), times=(90.0, 0.5), orphan=True) for n in range(3)]
    rows = [
        *segments(first),
        *segments([collection(n, ttl="ms", entries={"by": "x"}, weight=1.5) for n in range(40)]),
        *draws([{"k1": 20}], total=2),
    ]
    assert [from_key(to_key(row)) for row in rows] == rows
    assert [is_draw(to_key(row)) for row in rows] == [isinstance(row, DrawRow) for row in rows]
    facts = gather(rows, Population(5, 120, ttl="t", indexes={"by": 40}), 12.5, 120)
    assert from_json(SampleFacts, to_json(facts)) == facts


def test_the_facts_of_candidate_keys_have_their_templates() -> None:
    rows = [collection(n, candidates=(f"k{n % 5}", None)) for n in range(400)]
    facts = facts_of(rows, total=500, items=12_000, candidates=("PK={a}", "PK={b}"))
    even, missing = facts.candidates
    assert even.template == "PK={a}"
    assert even.effective.low <= 5 <= even.effective.high
    assert even.largest.low <= 0.2 <= even.largest.high
    assert missing.coverage.low == 0
    assert missing.coverage.high < 0.02 + facts.unrepresented.high  # type: ignore[union-attr]
    assert from_json(SampleFacts, to_json(facts)).candidates == facts.candidates
