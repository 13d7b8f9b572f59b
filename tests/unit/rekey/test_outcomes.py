"""The printed results of a copy, a comparison and a change."""

from dataclasses import replace

from keyhop.public.rekey_text import Stages, compared_lines, copied_lines, serves_line
from keyhop.rekey.control import Control
from keyhop.rekey.pair import Pair

PAIR = Pair("Old", "New", {})
CONTROL = Control(replicating=True)


def test_a_copy_prints_the_outcomes_of_its_items() -> None:
    why = {"key": "0123456789abcdef", "why": "attribute 'day' is missing"}
    first, *rest = copied_lines(PAIR, {"there": 1, "copied": 2_000, "unmappable": 1}, [why])
    assert first == "2,002 items of Old -> New"
    assert rest[0].split() == ["copied", "2,000", "put"]
    assert "left alone" in rest[1]
    assert rest[-1].split(maxsplit=2) == ["unmappable", "0123456789ab", why["why"]]


def test_a_comparison_prints_the_counts_of_differences_even_if_they_are_zero() -> None:
    first, *rest = compared_lines(PAIR, {"source_items": 5, "destination_items": 5, "equal": 0})
    assert first == "5 items of Old and 5 of New, compared"
    assert [line.split()[:2] for line in rest] == [
        ["missing", "0"],
        ["surplus", "0"],
        ["changed", "0"],
    ]


def test_a_comparison_prints_whether_differences_were_repaired() -> None:
    counts = {"missing": 2, "surplus": 1, "in_flight": 4}
    assert "3 differences left" in [*compared_lines(PAIR, counts)][-1]
    unsettled = [*compared_lines(PAIR, {"in_flight": 4, "unsettled": 2})]
    assert "2 differences left" in unsettled[-1]
    assert any("verify with repair settles them" in line for line in unsettled)
    repaired = [*compared_lines(PAIR, {**counts, "repaired": 3})]
    assert "all repaired" in repaired[-1]
    assert any("no difference" in line for line in repaired)


def test_a_change_prints_its_stage_and_the_remaining_seconds() -> None:
    control, now = CONTROL, 100.0
    stages = Stages(PAIR, lambda: control, lambda: now)
    printed = [stages()]
    control = control.closed()
    printed.append(stages())
    now += 12.0
    printed.append(stages())
    control = control.froze()
    printed.append(stages())
    control = replace(control.fenced().turned())
    printed.append(stages())
    control = control.opened()
    printed.append(stages())
    kinds, lines = [kind for kind, _ in printed], [line for _, (line,) in printed]
    assert len(dict.fromkeys(kinds)) == 5, "each stage once, and the end"
    assert "gates" in lines[0]
    assert lines[1].endswith("30 s left")
    assert lines[2].endswith("18 s left")
    assert "writes wait" in lines[3]
    assert lines[4].startswith("turned: New serves")
    assert lines[5] == "open: New serves"


def test_the_serving_table_is_named() -> None:
    assert serves_line(PAIR, {"serving": "destination"}, 4.14) == (
        "New serves now; writes waited for 4.1 s."
    )
    assert serves_line(PAIR, {"serving": "source"}, None) == "Old serves now."
