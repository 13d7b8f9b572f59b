"""From rows to facts."""

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


def collection(number: int, items: int = 3, key: str = "USER#{}", **noted: object) -> CollectionRow:
    return CollectionRow(
        key=f"k{number}",
        form=KeyForm.of({"S": key.format(number)}),
        items=items,
        whole=True,
        observations=tuple(
            Observation(**{"bytes": 100, "names": ("pk", "sk"), **noted})  # type: ignore[arg-type]
            for _ in range(items)
        ),
    )


def segments(rows: list[CollectionRow], each: int = 8) -> list[SegmentRow]:
    return [SegmentRow(at, True, tuple(rows[at : at + each])) for at in range(0, len(rows), each)]


def facts_of(rows: list[CollectionRow], of: int = 1_000, items: int = 0, **more: object):
    return gather(segments(rows), Population(of, items, **more))  # type: ignore[arg-type]


def test_keys_are_counted_in_all_segments_and_lengths_in_those_that_were_probed() -> None:
    cut = CollectionRow("c", KeyForm(), 2, whole=False)
    counted = SegmentRow(0, False, tuple([cut] * 8))
    facts = gather([counted, *segments([collection(n) for n in range(80)])], Population(110, 0))
    assert facts.keys.value == 880
    assert facts.length[0.5].value == 3
    assert facts.length[0.5].high == 3


def test_all_segments_read_is_all_there_is() -> None:
    facts = facts_of([collection(n) for n in range(16)], of=2, items=48)
    assert facts.keys == Estimate.exactly(16, 16, "complete count")
    assert facts.all_items
    assert facts.unseen.high == 0


def test_what_is_cut_keeps_a_complete_look_from_being_called_one() -> None:
    rows = [collection(n) for n in range(15)]
    facts = facts_of([*rows, CollectionRow("c", KeyForm(), 2, whole=False)], of=2, items=48)
    assert facts.all_keys
    assert not facts.all_items
    assert facts.unseen is None


@pytest.mark.parametrize(
    ("keys", "share"), [(["2026-01-{:02}"], 1.0), (["DATE#2026-01-{:02}"], 1.0), (["USER#{}"], 0.0)]
)
def test_keys_that_are_dates(keys: list[str], share: float) -> None:
    facts = facts_of([collection(1 + n % 28, key=keys[0]) for n in range(64)])
    assert facts.dated.value == share


def test_dates_of_many_places_are_no_dates_alone() -> None:
    places = ["JFK", "LAX", "ORD", "ATL", "SFO"]
    rows = [collection(n, key=places[n % 5] + "#2026-01-01") for n in range(64)]
    facts = facts_of(rows)
    assert facts.dated.value == 0


def test_a_word_that_one_key_has_is_no_tag_and_is_not_told() -> None:
    rows = [collection(n) for n in range(40)] + [collection(99, key="canary#{}")]
    facts = facts_of(rows)
    assert [tag.name for tag in facts.tags] == ["USER"]
    assert facts.tagged.value == 40 / 41


def test_sequential_numbers_are_dense_and_random_ones_are_not() -> None:
    chance = random.Random(1)
    rows = [collection(n) for n in chance.sample(range(8_000), 64)]
    facts = facts_of(rows)
    assert facts.density.low > 0.5
    sparse = facts_of([collection(chance.randrange(10**9)) for _ in range(64)])
    assert sparse.density.high < 0.5


def test_unpadded_numbers_are_of_several_widths() -> None:
    rows = [collection(n, widths={"": (("ITEM", 1 + n % 3),)}) for n in range(40)]
    facts = facts_of(rows)
    assert facts.unpadded.value == 1
    padded = facts_of([collection(n, widths={"": (("", -3 if n % 2 else 3),)}) for n in range(40)])
    assert padded.unpadded.value == 0


@pytest.mark.parametrize(("size", "share"), [(350 * 1024, 1), (350 * 1024 - 1, 0)])
def test_items_are_large_from_350_kilobytes_on(size: int, share: float) -> None:
    assert facts_of([collection(n, bytes=size) for n in range(40)]).large.value == share


def test_the_mean_size_allows_for_items_that_the_sample_does_not_represent() -> None:
    rows = [collection(n) for n in range(40)]
    whole = facts_of(rows, of=5, items=120).item_mean
    assert (whole.low, whole.high) == (100, 100)
    unread = facts_of(rows, of=10, items=2_400).item_mean
    assert unread.low < 20
    assert unread.high > 300_000
    described = facts_of(rows, of=10, items=2_400, bytes=2_400 * 400.0).item_mean
    assert described.high == 500


def test_numbers_that_touch_many_words_are_parts_of_names() -> None:
    def touching(words: int) -> float:
        places = [f"head/word{number % words}" for number in range(80)]
        rows = [
            collection(n, widths={"": ((place, 1 + n // words % 2),)})
            for n, place in enumerate(places)
        ]
        unpadded = facts_of(rows).unpadded
        return unpadded.value

    assert touching(5) == 1
    assert touching(6) == 0


def test_an_attribute_with_one_value_for_each_kind_names_the_kind() -> None:
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
    other = [collection(n, names=("art", "pk"), words={"art": f"x{n}"}) for n in range(20)]
    assert facts_of(rows("o", *other)).type_name == ""


def test_sort_keys_tell_the_kind_if_they_have_several_tags() -> None:
    rows = [collection(n, tag="ORDER" if n % 2 else "PROFILE") for n in range(40)]
    several = facts_of(rows).sort_tagged
    alone = facts_of(rows[1::2]).sort_tagged
    assert (several.value, alone.value) == (1, 0)


def test_the_type_attribute_that_most_items_have() -> None:
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


def draws(index: str, keys: list[dict[str, int]], of: int, whole: bool = True) -> list[DrawRow]:
    return [DrawRow(index, at, of, whole, one, {"e": 1}) for at, one in enumerate(keys)]


def test_a_giant_that_no_segment_met_is_met_by_an_index() -> None:
    drawn = draws("by", [{"giant": 8, f"k{n}": 6, f"k{n + 50}": 6} for n in range(40)], of=500)
    facts = gather(
        [*segments([collection(n) for n in range(64)]), *drawn],
        Population(1_000, 10_000, indexes={"by": 10_000}),
    )
    assert facts.biased == ("GSI by",)
    assert facts.top[0].key == "giant"
    assert facts.top[0].by == "GSI by"
    assert facts.top[0].items.low <= 4_000 <= facts.top[0].items.high


def test_an_index_most_of_whose_entries_are_never_met_is_no_source() -> None:
    drawn = draws("by", [{f"k{n}": 2} for n in range(40)], of=500)
    drawn += draws("by", [{"giant": 60}], of=500, whole=False)
    facts = gather(drawn, Population(1_000, 10_000, indexes={"by": 10_000}))
    assert facts.biased == ()


def part_of(length: float, size: int) -> CollectionRow:
    seen = collection(0, items=2, bytes=size)
    return replace(seen, whole=False, length=Estimate(length, length, length, 2, "windows"))


def test_the_size_of_a_collection_is_its_items_if_all_were_read() -> None:
    facts = facts_of([collection(1, items=3), collection(2, items=2)], items=5, bytes=500.0)
    assert facts.top[0].bytes == Estimate.exactly(300.0, 3, "counted")


def test_no_collection_is_larger_than_the_table() -> None:
    """The items that were read are large, and most of the others are small."""
    facts = facts_of([part_of(1_000, size=20_000)], items=2_000, bytes=2e6)
    size = facts.top[0].bytes
    assert size.low == 0
    assert size.value == 1e6
    assert 2e6 <= size.high <= 3e6


def test_a_collection_may_hold_all_bytes_that_nobody_has_read() -> None:
    """The items that were read are small, and most of the others are large."""
    facts = facts_of([part_of(1_000, size=100)], items=2_000, bytes=2e7)
    size = facts.top[0].bytes
    assert size.value == 1e5
    assert size.high >= 2e7


@pytest.mark.parametrize("told", [(0, 0.0), (100, 1e4)])
def test_a_table_that_grew_since_it_was_described_refutes_no_size(told: tuple[int, float]) -> None:
    items, size_of_table = told
    size = facts_of([part_of(1_000, size=5_000)], items=items, bytes=size_of_table).top[0].bytes
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
    growing = facts_of(rows, of=1, items=8 * items).growing
    assert growing.value == share


def test_constraints_whose_primaries_are_in_another_table() -> None:
    def rows(tag: str, orphans: int) -> list[CollectionRow]:
        keys = [collection(n, 1, key=f"{tag}#{{}}") for n in range(20)]
        return [replace(row, orphan=n < orphans) for n, row in enumerate(keys)]

    many = facts_of(rows("EMAIL", 18)).orphans
    assert (many.value, many.n) == (0.9, 20)
    assert facts_of(rows("EMAIL", 19)).orphans is None
    both = facts_of([*rows("EMAIL", 20), *rows("PHONE", 1)]).orphans
    assert (both.value, both.n) == (0.05, 20)


def test_rows_and_facts_survive_json() -> None:
    first = [replace(collection(n), times=(90.0, 0.5), orphan=True) for n in range(3)]
    rows = [
        *segments(first),
        *segments([collection(n, ttl="ms", entries={"by": "x"}, weight=1.5) for n in range(40)]),
        *draws("by", [{"k1": 20}], of=2),
    ]
    assert [from_key(to_key(row)) for row in rows] == rows
    assert [is_draw(to_key(row)) for row in rows] == [isinstance(row, DrawRow) for row in rows]
    facts = gather(rows, Population(5, 120, ttl="t", indexes={"by": 40}), 12.5, 120)
    assert from_json(SampleFacts, to_json(facts)) == facts


def test_candidate_keys_are_told_of_by_their_templates() -> None:
    rows = [collection(n, candidates=(f"k{n % 5}", None)) for n in range(400)]
    facts = facts_of(rows, of=500, items=12_000, candidates=("PK={a}", "PK={b}"))
    even, none = facts.candidates
    assert even.template == "PK={a}"
    assert even.effective.low <= 5 <= even.effective.high
    assert even.largest.low <= 0.2 <= even.largest.high
    assert none.coverage.low == 0
    assert none.coverage.high < 0.02 + facts.unrepresented.high  # type: ignore[union-attr]
    assert from_json(SampleFacts, to_json(facts)).candidates == facts.candidates
