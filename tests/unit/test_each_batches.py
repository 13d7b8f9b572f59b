"""Batches of keys: the same keys under the same id, whatever happens; answers at their word."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.each.deliver import (
    KeyBatch,
    Nonsense,
    batches_of,
    body,
    failed_of,
    name_of,
    sent_key,
)

PAGE = "run.3.500"


@given(st.integers(1, 40), st.integers(1, 400), st.lists(st.text(max_size=30), max_size=60))
def test_a_page_is_cut_into_batches_that_lose_no_key_and_are_small_enough(
    size: int, most: int, keys: list[str]
) -> None:
    found = list(batches_of(PAGE, keys, size, most))
    assert [key for one in found for key in one.keys] == keys
    for one in found:
        assert 1 <= len(one.keys) <= size
        assert len(json.dumps(one.keys, separators=(",", ":"))) <= most + 1 or len(one.keys) == 1
    assert found == list(batches_of(PAGE, keys, size, most)), "as often as it is worked"


@given(st.lists(st.integers(0, 50), min_size=1, unique=True), st.data())
def test_an_id_stands_for_its_keys_alone(keys: list[int], data: st.DataObject) -> None:
    batch = KeyBatch(PAGE, keys)
    some = data.draw(st.lists(st.sampled_from(range(len(keys))), unique=True))
    part = batch.part(sorted(some))
    assert batch.part(range(len(keys))).id == batch.id
    assert (part.id == batch.id) is (len(some) == len(keys))
    assert part.id == batch.part(sorted(some)).id
    assert KeyBatch("run.3.600", keys).id != batch.id
    assert batch.id.startswith(f"{PAGE}-")


def test_a_batch_is_json_that_says_what_it_is() -> None:
    batch = KeyBatch(PAGE, ["a", "ä"])
    text = body("run", batch, "Orders")
    assert text.isascii()
    told = {"run": "run", "batch": batch.id, "table": "Orders", "keys": ["a", "ä"]}
    assert json.loads(text) == told


@pytest.mark.parametrize("answer", [None, "done", 7, [], {}, {"ok": True}, {"failed": []}])
def test_whatever_names_no_failed_key_says_that_all_are_done(answer: object) -> None:
    assert failed_of(answer, ["a", "b"]) == []


def test_failed_keys_are_named_by_themselves_or_by_their_place() -> None:
    assert failed_of({"failed": ["c", "a"]}, ["a", "b", "c"]) == [0, 2]
    assert failed_of({"failed": [2, 0, 0]}, ["a", "b", "c"]) == [0, 2]
    assert failed_of({"failed": [5, 7.0]}, [7, 6, 5]) == [0, 2], "of numbers, the key itself"
    assert failed_of({"failed": [1e21]}, [10**21]) == [0]
    assert failed_of({"failed": [0.1]}, [0.1, 1]) == [0]


@pytest.mark.parametrize("failed", ["a", {"a": 1}, [3], [-1], ["z"], [True], [None], [[0]], [{}]])
def test_an_answer_that_cannot_be_meant_is_nonsense_and_is_not_quoted(failed: object) -> None:
    with pytest.raises(Nonsense) as error:
        failed_of({"failed": failed}, ["a", "b", "c"])
    assert "z" not in str(error.value)


def test_where_keys_are_numbers_a_place_is_no_name() -> None:
    with pytest.raises(Nonsense):
        failed_of({"failed": [0]}, [1, 2])


def test_keys_are_sent_as_people_write_them() -> None:
    assert sent_key({"pk": {"S": "a"}}) == "a"
    assert sent_key({"pk": {"N": "5"}}) == 5
    assert sent_key({"pk": {"N": "9007199254740993"}}) == "9007199254740993"
    assert sent_key({"pk": {"B": b"\x00\xff"}}) == "AP8="
    assert sent_key({"a": {"S": "x"}, "b": {"N": "1"}}) == {"a": {"S": "x"}, "b": {"N": "1"}}


@given(st.text(max_size=200), st.text(max_size=50))
def test_a_name_is_one_that_services_take_and_stands_for_its_content(id_: str, text: str) -> None:
    name = name_of(id_, text, 80)
    assert 17 <= len(name) <= 80
    assert all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    assert name == name_of(id_, text, 80) != name_of(id_, text + "x", 80)
