"""Check physical keys, places, metadata items, page tokens and fences."""

from decimal import Decimal, Inexact, localcontext

import pytest
from boto3.dynamodb.conditions import Attr
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.sharding.io.items import Clause, check_expressions, clause_of, with_fence
from keyhop.sharding.io.reader import Query, after_token, rank_of, token_of
from keyhop.sharding.key.placement import jump, place_of
from keyhop.sharding.key.schema import Names, Schema
from keyhop.sharding.key.shards import HISTORY, MOST_SHARDS, Shards, from_item, to_item

from testing.sharding_costs import expected_candidates

SEPARATORS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=3)
separators = SEPARATORS.filter(lambda text: not any(c.isdigit() for c in text))
keys = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@given(keys, st.integers(1, MOST_SHARDS), separators)
def test_a_physical_key_is_read_as_it_was_written(key: str, shard: int, separator: str) -> None:
    names = Names("S", separator)
    for logical in (key, f"{key}{separator}{shard}", f"{key}{separator}"):
        assert names.parsed(names.physical({"S": logical}, shard)) == ({"S": logical}, shard)


@given(st.binary(min_size=1, max_size=20), st.integers(1, MOST_SHARDS))
def test_a_binary_physical_key_is_read_as_it_was_written(key: bytes, shard: int) -> None:
    names = Names("B", "_")
    assert names.parsed(names.physical({"B": key}, shard)) == ({"B": key}, shard)


@given(keys, keys, st.integers(1, MOST_SHARDS), st.integers(1, MOST_SHARDS))
def test_two_shards_never_have_the_same_physical_key(a: str, b: str, m: int, n: int) -> None:
    names = Names()
    if (a, m) != (b, n):
        assert names.physical({"S": a}, m) != names.physical({"S": b}, n)


@pytest.mark.parametrize("key", ["a", "a_", "_1", "a_01", "a_0", "a_1x", "a_1001", "a_²"])
def test_a_key_without_a_suffix_is_not_a_shard(key: str) -> None:
    assert Names().parsed({"S": key}) is None


@pytest.mark.parametrize("separator", ["", "1", "_1", "a b", "\n", "ü", "_" * 17])
def test_ambiguous_separators_are_refused(separator: str) -> None:
    with pytest.raises(CannotStart, match="separator"):
        Names("S", separator)


def test_numbers_empty_keys_and_long_keys_are_refused() -> None:
    with pytest.raises(CannotStart, match="number"):
        Names("N")
    for key in ("", "ü" * 1022):
        with pytest.raises(CannotStart, match="bytes"):
            Names().physical({"S": key}, 1)
    assert len(Names().physical({"S": "ü" * 1021}, MOST_SHARDS)["S"].encode()) <= 2048
    with pytest.raises(CannotStart, match="must be a text"):
        Names().physical({"N": "1"}, 1)


@given(st.integers(0, 2**64 - 1), st.integers(1, 200))
def test_a_new_bucket_only_takes_keys_from_the_others(key: int, buckets: int) -> None:
    before, after = jump(key, buckets), jump(key, buckets + 1)
    assert 0 <= before < buckets
    assert after in (before, buckets)


def test_places_are_even_and_adding_a_shard_moves_its_share() -> None:
    places = [place_of({"S": "k"}, {"N": str(n)}, "jump") for n in range(4_000)]
    by_seven = [place(7) for place in places]
    assert all(4_000 / 7 * 0.8 < by_seven.count(shard) < 4_000 / 7 * 1.2 for shard in range(1, 8))
    moved_keys = sum(place(8) != place(7) for place in places)
    assert 4_000 / 8 * 0.8 < moved_keys < 4_000 / 8 * 1.2
    published = [place_of({"S": "k"}, {"N": str(n)}, "modulo") for n in range(4_000)]
    assert sum(place(8) != place(7) for place in published) > 3_000


@pytest.mark.parametrize("hash_", ["jump", "modulo"])
def test_expected_candidates_match_the_measured_mean(hash_: str) -> None:
    for counts in ({1}, {1, 2}, {1, 2, 4, 8}, {3, 4}, {1, 2, 3}):
        places = [place_of({"S": "k"}, {"N": str(n)}, hash_) for n in range(3_000)]
        mean = sum(len({place(count) for count in counts}) for place in places) / 3_000
        expected = expected_candidates(counts, hash_)
        assert mean <= expected * 1.03
        assert hash_ == "modulo" or mean >= expected * 0.97


def test_places_do_not_depend_on_the_callers_decimal_context() -> None:
    keys = [{"N": str(1_800_000_000_000 + n)} for n in range(50)]
    places = [place_of({"S": "k"}, key, "jump")(64) for key in keys]
    with localcontext() as context:
        context.prec = 9
        context.traps[Inexact] = True
        assert [place_of({"S": "k"}, key, "jump")(64) for key in keys] == places


def test_equal_numbers_have_equal_places() -> None:
    for texts in (("1", "1.0"), ("100", "1E+2"), ("0", "-0"), ("0.10", "1e-1")):
        for hash_ in ("jump", "modulo"):
            first, second = (place_of({"S": "k"}, {"N": text}, hash_)(7) for text in texts)
            assert first == second


def test_the_border_of_partition_and_sort_key_changes_the_place() -> None:
    place = place_of({"S": "ab"}, {"S": "c"}, "jump")(997)
    assert place != place_of({"S": "a"}, {"S": "bc"}, "jump")(997)


shards = st.builds(
    lambda number, at, settle: Shards.registered(at, settle, "calculated jump _", number),
    st.integers(1, 64),
    st.floats(1, 2e9),
    st.floats(2, 60).map(lambda seconds: round(seconds, 1)),
)


@given(shards, st.lists(st.sampled_from("+-.x"), max_size=60))
def test_metadata_survives_its_item_after_any_change(current: Shards, acts: list) -> None:
    for act in acts:
        try:
            if act == "+":
                current = current.grown(current.number + 1, 0.0)
            elif act == "-":
                current = current.shrunk(max(1, current.number // 2), 0.0)
            elif act == "x":
                current = current.reopened(0.0)
            else:
                current = current.advanced(0.0)
        except (AssertionError, ValueError):
            continue
        assert from_item(to_item(current)) == current
        assert current.writable <= current.readable
        assert current.number <= current.readable
        assert 1 <= len(current.history) <= HISTORY
        assert current.history[-1][1] == current.number
        assert current.number in current.placed_by or current.placed_by


def test_an_item_with_the_published_attributes_only_is_steady() -> None:
    item = {
        "number_of_shards": {"N": "4"},
        "last_updated": {"N": "1700000000.5"},
        "shard_history": {"SS": ["1690000000:2", "1700000000:4", "1680000000:1"]},
    }
    current = from_item(item)
    assert current.number == current.writable == current.readable == 4
    assert current.phase == "steady"
    assert current.history == ((1680000000, 1), (1690000000, 2), (1700000000, 4))
    assert current.placed_by == {1, 2, 4}
    assert current.before == 2
    without = {name: item[name] for name in ("number_of_shards", "last_updated")}
    grown = from_item(without).grown(5, 1.8e9)
    assert grown.before == 4
    assert grown.placed_by == {4, 5}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"number_of_shards": {"N": "0"}},
        {"number_of_shards": {"S": "4"}},
        {"shard_history": {"SS": ["x"]}},
        {"phase": {"S": "odd"}},
        {"writable": {"N": "9"}},
    ],
)
def test_impossible_metadata_is_reported(wrong: dict) -> None:
    item = {"number_of_shards": {"N": "4"}, "last_updated": {"N": "1"}}
    with pytest.raises(BrokenPromise, match="metadata"):
        from_item({**item, **wrong} if wrong else {})


@pytest.mark.parametrize(("hash_", "counts"), [("jump", {2}), ("modulo", {2, 8})])
def test_after_a_drain_a_jump_hash_has_fewer_places(hash_: str, counts: set[int]) -> None:
    for separator in ("_", "jump", "modulo"):
        current = Shards.registered(0.0, 5.0, f"calculated {hash_} {separator}", 8).shrunk(2, 0.0)
        for _ in range(4):
            current = current.advanced(0.0)
        assert (current.phase, current.readable, current.placed_by) == ("steady", 2, counts)


def test_a_foreign_history_is_accepted() -> None:
    item = {
        "number_of_shards": {"N": "2"},
        "last_updated": {"N": "99"},
        "shard_history": {"SS": ["99:2", "99:3"]},
    }
    grown = to_item(from_item(item).grown(3, 0.0))["shard_history"]["SS"]
    assert len(set(grown)) == len(grown)


def test_the_history_keeps_the_twenty_latest() -> None:
    current = Shards.registered(0.0, 5.0, None)
    for number in range(2, 30):
        current = current.grown(number, 0.0).advanced(0.0).advanced(0.0)
    assert [count for _, count in current.history] == list(range(10, 30))
    assert current.placed_by == set(range(1, 30)), "older places are still known"


QUESTION = Query({"S": "/f"}, ({"N": "1"}, None), descending=True)


@pytest.mark.parametrize("last", [{"S": "ü"}, {"N": "1.5"}, {"B": b"\x00\xff"}])
def test_a_page_token_continues_after_its_sort_key(last: dict) -> None:
    assert after_token(QUESTION, token_of(QUESTION, last)) == last


@pytest.mark.parametrize(
    "query",
    [
        Query({"S": "/g"}, ({"N": "1"}, None), descending=True),
        Query({"S": "/f"}, (None, None), descending=True),
        Query({"S": "/f"}, ({"N": "1"}, None)),
    ],
)
def test_a_page_token_of_another_query_is_refused(query: Query) -> None:
    with pytest.raises(CannotStart, match="another query"):
        after_token(query, token_of(QUESTION, {"N": "1"}))


@pytest.mark.parametrize(
    "token", ["", "x", "e30=", "bnVsbA==", "é", "eyJhZnRlciI6eyJTIjoyMDAwMDAwMDAwMH0sIm9mIjoiIn0="]
)
def test_a_damaged_page_token_is_refused(token: str) -> None:
    with pytest.raises(CannotStart, match="damaged"):
        after_token(QUESTION, token)


def test_ranks_are_the_services_order() -> None:
    texts = ["a", "Z", "é", "\U0001f600", "\uffff"]
    ranked = sorted(texts, key=lambda text: rank_of({"S": text}, False))
    assert ranked == sorted(texts, key=str.encode)
    numbers = ["10", "9", "-1", "1e2", "0.5"]
    ranked = sorted(numbers, key=lambda text: rank_of({"N": text}, True))
    assert ranked == sorted(numbers, key=Decimal, reverse=True)


@pytest.mark.parametrize(
    ("update", "fenced"),
    [
        ("SET a = :a", "SET #kh_fence = :kh_fence, a = :a"),
        ("REMOVE b set a = :a", "REMOVE b set #kh_fence = :kh_fence, a = :a"),
        ("REMOVE offset", "REMOVE offset SET #kh_fence = :kh_fence"),
        ("ADD #set :n", "ADD #set :n SET #kh_fence = :kh_fence"),
        ("ADD n :set", "ADD n :set SET #kh_fence = :kh_fence"),
        ("SET\n a = :a", "SET #kh_fence = :kh_fence, a = :a"),
        ("SET#a = :a REMOVE b", "SET #kh_fence = :kh_fence, #a = :a REMOVE b"),
        ("", "SET #kh_fence = :kh_fence"),
    ],
)
def test_a_fence_joins_any_update(update: str, fenced: str) -> None:
    assert with_fence(update) == fenced


@pytest.mark.parametrize(
    "update",
    [
        *("SET copied = file", "SET a=file", "SET a = if_not_exists(file, :v)"),
        *("SET a = list_append(file,b)", "SET #f = :v", "set x = :v, y = #f"),
    ],
)
def test_an_update_that_uses_the_partition_key_is_refused(update: str) -> None:
    schema = Schema("t", KeyAttribute("file", "S"), KeyAttribute("at", "S"), Names())
    with pytest.raises(CannotStart, match="cannot use the partition key file"):
        check_expressions(schema, Clause(names={"#f": "file"}), update)


@pytest.mark.parametrize(
    "update", ["SET a = files, b = :file, c = #file, d.file = d.#f, e = my-file", "REMOVE a.file"]
)
def test_an_update_that_uses_a_similar_name_is_accepted(update: str) -> None:
    schema = Schema("t", KeyAttribute("file", "S"), KeyAttribute("at", "S"), Names())
    check_expressions(schema, Clause(names={"#f": "file", "#file": "a"}), update)


def test_conditions_are_texts_or_boto3_conditions() -> None:
    parameters = clause_of(Attr("a").gt(1) & Attr("b").not_exists(), None, None).parameters()
    assert parameters["ConditionExpression"] == "(#n0 > :v0 AND attribute_not_exists(#n1))"
    assert parameters["ExpressionAttributeNames"] == {"#n0": "a", "#n1": "b"}
    assert parameters["ExpressionAttributeValues"] == {":v0": {"N": "1"}}
    text = clause_of("a = :a", None, {":a": {1, 2}}).and_(
        Clause("attribute_exists(#p)", {"#p": "p"})
    )
    assert text.condition == "(a = :a) AND attribute_exists(#p)"
    assert text.parameters()["ExpressionAttributeValues"][":a"]["NS"]
