"""How keys are written."""

from keyhop.report.forms import Shower

KEY = {"pk": {"S": "USER#ada"}}


def test_a_digest_is_the_same_in_each_report_of_a_table_and_in_no_other() -> None:
    assert Shower("arn#1").shown(KEY) == Shower("arn#1").shown(KEY)
    assert Shower("arn#1").shown(KEY) != Shower("arn#2").shown(KEY)
    assert "ada" not in Shower("arn#1").shown(KEY)


def test_equal_numbers_have_one_digest_and_types_differ() -> None:
    shown = Shower("arn#1").shown
    assert shown({"pk": {"N": "1.0"}}) == shown({"pk": {"N": "1"}})
    assert shown({"pk": {"N": "1"}}) != shown({"pk": {"S": "1"}})


def test_a_prefix_has_the_tag_or_a_few_characters() -> None:
    shown = Shower("arn#1", "prefix").shown
    assert shown(KEY).startswith("USER#…")
    assert "ada" not in shown(KEY)
    assert shown({"pk": {"S": "ada.lovelace"}}).startswith("ada.…")


def test_whole_keys_if_they_are_asked_for() -> None:
    assert Shower("arn#1", "full").shown(KEY) == "USER#ada"
    assert Shower("arn#1", "full").shown({"a": {"N": "1"}, "b": {"S": "x"}}) == "1 x"
