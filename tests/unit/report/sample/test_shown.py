"""Tests of how a report shows keys."""

from keyhop.report.forms import Shower

KEY = {"pk": {"S": "USER#ada"}}


def test_a_digest_is_the_same_in_each_report_on_a_table_and_differs_between_tables() -> None:
    assert Shower("arn#1").shown(KEY) == Shower("arn#1").shown(KEY)
    assert Shower("arn#1").shown(KEY) != Shower("arn#2").shown(KEY)
    assert "ada" not in Shower("arn#1").shown(KEY)


def test_equal_numbers_have_one_digest_and_types_differ() -> None:
    show = Shower("arn#1").shown
    assert show({"pk": {"N": "1.0"}}) == show({"pk": {"N": "1"}})
    assert show({"pk": {"N": "1"}}) != show({"pk": {"S": "1"}})


def test_a_prefix_has_the_tag_or_a_few_characters() -> None:
    show = Shower("arn#1", "prefix").shown
    assert show(KEY).startswith("USER#…")
    assert "ada" not in show(KEY)
    assert show({"pk": {"S": "ada.lovelace"}}).startswith("ada.…")


def test_whole_keys_are_shown_on_request() -> None:
    assert Shower("arn#1", "full").shown(KEY) == "USER#ada"
    assert Shower("arn#1", "full").shown({"a": {"N": "1"}, "b": {"S": "x"}}) == "1 x"
