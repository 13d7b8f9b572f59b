"""Physical keys, places, metadata items, page tokens, fences."""

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
def test_so_is_a_binary_one(key: bytes, shard: int) -> None:
    names = Names("B", "_")
    assert names.parsed(names.physical({"B": key}, shard)) == ({"B": key}, shard)


@given(keys, keys, st.integers(1, MOST_SHARDS), st.integers(1, MOST_SHARDS))
def test_two_shards_never_have_the_same_physical_key(a: str, b: str, m: int, n: int) -> None:
    names = Names()
    if (a, m) != (b, n):
        assert names.physical({"S": a}, m) != names.physical({"S": b}, n)


@pytest.mark.parametrize("key", ["a", "a_", "_1", "a_01", "a_0", "a_1x", "a_1001", "a_²"])
def test_a_key_without_a_suffix_is_no_shard(key: str) -> None:
    assert Names().parsed({"S": key}) is None


@pytest.mark.parametrize("separator", ["", "1", "_1", "a b", "\n", "ü", "_" * 17])
def test_separators_that_could_confuse_are_refused(separator: str) -> None:
    with pytest.raises(CannotStart, match="separator"):
        Names("S", separator)


def test_numbers_and_keys_of_no_or_too_many_bytes_are_refused() -> None:
    with pytest.raises(CannotStart, match="number"):
        Names("N")
    for key in ("", "ü" * 1022):
        with pytest.raises(CannotStart, match="bytes"):
            Names().physical({"S": key}, 1)
    assert len(Names().physical({"S": "ü" * 1021}, MOST_SHARDS)["S"].encode()) <= 2048
    with pytest.raises(CannotStart, match="must be a text"):
        Names().physical({"N": "1"}, 1)


@given(st.integers(0, 2**64 - 1), st.integers(1, 200))
def test_one_more_bucket_moves_a_key_there_or_not_at_all(key: int, buckets: int) -> None:
    before, after = jump(key, buckets), jump(key, buckets + 1)
    assert 0 <= before < buckets
    assert after in (before, buckets)


def test_places_are_even_and_adding_a_shard_moves_its_share() -> None:
    places = [place_of({"S": "k"}, {"N": str(n)}, "jump") for n in range(4_000)]
    by_seven = [place(7) for place in places]
    assert all(4_000 / 7 * 0.8 < by_seven.count(shard) < 4_000 / 7 * 1.2 for shard in range(1, 8))
    moved = sum(place(8) != place(7) for place in places)
    assert 4_000 / 8 * 0.8 < moved < 4_000 / 8 * 1.2
    published = [place_of({"S": "k"}, {"N": str(n)}, "modulo") for n in range(4_000)]
    assert sum(place(8) != place(7) for place in published) > 3_000


@pytest.mark.parametrize("hash_", ["jump", "modulo"])
def test_expected_candidates_are_what_is_found(hash_: str) -> None:
    for counts in ({1}, {1, 2}, {1, 2, 4, 8}, {3, 4}, {1, 2, 3}):
        places = [place_of({"S": "k"}, {"N": str(n)}, hash_) for n in range(3_000)]
        mean = sum(len({place(count) for count in counts}) for place in places) / 3_000
        expected = expected_candidates(counts, hash_)
        assert mean <= expected * 1.03
        assert hash_ == "modulo" or mean >= expected * 0.97


def test_places_do_not_depend_on_the_callers_decimal_context() -> None:
    keys = [{"N": str(1_800_000_000_000 + n)} for n in range(50)]
    before = [place_of({"S": "k"}, key, "jump")(64) for key in keys]
    with localcontext() as context:
        context.prec = 9
        context.traps[Inexact] = True
        assert [place_of({"S": "k"}, key, "jump")(64) for key in keys] == before


def test_equal_numbers_have_equal_places() -> None:
    for one, other in (("1", "1.0"), ("100", "1E+2"), ("0", "-0"), ("0.10", "1e-1")):
        for hash_ in ("jump", "modulo"):
            places = [place_of({"S": "k"}, {"N": text}, hash_) for text in (one, other)]
            assert {place(count) for place in places for count in (7,)} == {places[0](7)}


def test_texts_and_binaries_of_the_same_bytes_are_not_confused() -> None:
    one = [place_of({"S": "ab"}, {"S": "c"}, "jump")(n) for n in (997,)]
    other = [place_of({"S": "a"}, {"S": "bc"}, "jump")(n) for n in (997,)]
    assert one != other


shards = st.builds(
    lambda number, at, settle: Shards.registered(at, settle, "calculated jump _", number),
    st.integers(1, 64),
    st.floats(1, 2e9),
    st.floats(2, 60).map(lambda seconds: round(seconds, 1)),
)


@given(shards, st.lists(st.sampled_from("+-.x"), max_size=60))
def test_metadata_survives_its_item_whatever_is_done_with_it(known: Shards, acts: list) -> None:
    for act in acts:
        try:
            if act == "+":
                known = known.grown(known.number + 1, 0.0)
            elif act == "-":
                known = known.shrunk(max(1, known.number // 2), 0.0)
            elif act == "x":
                known = known.reopened(0.0)
            else:
                known = known.advanced(0.0)
        except (AssertionError, ValueError):
            continue
        assert from_item(to_item(known)) == known
        assert known.writable <= known.readable
        assert known.number <= known.readable
        assert 1 <= len(known.history) <= HISTORY
        assert known.history[-1][1] == known.number
        assert known.number in known.placed_by or known.placed_by


def test_an_item_with_the_published_attributes_only_is_steady() -> None:
    item = {
        "number_of_shards": {"N": "4"},
        "last_updated": {"N": "1700000000.5"},
        "shard_history": {"SS": ["1690000000:2", "1700000000:4", "1680000000:1"]},
    }
    known = from_item(item)
    assert (known.number, known.writable, known.readable, known.phase) == (4, 4, 4, "steady")
    assert known.history == ((1680000000, 1), (1690000000, 2), (1700000000, 4))
    assert known.placed_by == {1, 2, 4}
    assert known.before == 2
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
def test_metadata_that_cannot_be_is_told(wrong: dict) -> None:
    item = {"number_of_shards": {"N": "4"}, "last_updated": {"N": "1"}}
    with pytest.raises(BrokenPromise, match="metadata"):
        from_item({**item, **wrong} if wrong else {})


@pytest.mark.parametrize(("hash_", "kept"), [("jump", {2}), ("modulo", {2, 8})])
def test_after_a_drain_a_jump_hash_has_fewer_places(hash_: str, kept: set[int]) -> None:
    for separator in ("_", "jump", "modulo"):
        known = Shards.registered(0.0, 5.0, f"calculated {hash_} {separator}", 8).shrunk(2, 0.0)
        for _ in range(4):
            known = known.advanced(0.0)
        assert (known.phase, known.readable, known.placed_by) == ("steady", 2, kept)


def test_a_history_of_somebody_else_is_no_hindrance() -> None:
    item = {
        "number_of_shards": {"N": "2"},
        "last_updated": {"N": "99"},
        "shard_history": {"SS": ["99:2", "99:3"]},
    }
    grown = to_item(from_item(item).grown(3, 0.0))["shard_history"]["SS"]
    assert len(set(grown)) == len(grown)


def test_the_history_keeps_the_twenty_latest() -> None:
    known = Shards.registered(0.0, 5.0, None)
    for number in range(2, 30):
        known = known.grown(number, 0.0).advanced(0.0).advanced(0.0)
    assert [count for _, count in known.history] == list(range(10, 30))
    assert known.placed_by == set(range(1, 30)), "older places are not forgotten with it"


QUESTION = Query({"S": "/f"}, ({"N": "1"}, None), descending=True)


@pytest.mark.parametrize("last", [{"S": "ü"}, {"N": "1.5"}, {"B": b"\x00\xff"}])
def test_a_page_token_goes_on_behind_its_sort_key(last: dict) -> None:
    assert after_token(QUESTION, token_of(QUESTION, last)) == last


@pytest.mark.parametrize(
    "other",
    [
        Query({"S": "/g"}, ({"N": "1"}, None), descending=True),
        Query({"S": "/f"}, (None, None), descending=True),
        Query({"S": "/f"}, ({"N": "1"}, None)),
    ],
)
def test_a_page_token_of_another_query_is_refused(other: Query) -> None:
    with pytest.raises(CannotStart, match="another query"):
        after_token(other, token_of(QUESTION, {"N": "1"}))


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
def test_one_that_uses_what_is_called_nearly_so_is_not(update: str) -> None:
    schema = Schema("t", KeyAttribute("file", "S"), KeyAttribute("at", "S"), Names())
    check_expressions(schema, Clause(names={"#f": "file", "#file": "a"}), update)


def test_conditions_are_texts_or_boto3s_own() -> None:
    told = clause_of(Attr("a").gt(1) & Attr("b").not_exists(), None, None).parameters()
    assert told["ConditionExpression"] == "(#n0 > :v0 AND attribute_not_exists(#n1))"
    assert told["ExpressionAttributeNames"] == {"#n0": "a", "#n1": "b"}
    assert told["ExpressionAttributeValues"] == {":v0": {"N": "1"}}
    text = clause_of("a = :a", None, {":a": {1, 2}}).and_(
        Clause("attribute_exists(#p)", {"#p": "p"})
    )
    assert text.condition == "(a = :a) AND attribute_exists(#p)"
    assert text.parameters()["ExpressionAttributeValues"][":a"]["NS"]
