"""What `keyhop shards` prints, and how it reads its arguments; no database."""

import argparse
import io
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from keyhop.cli import progress, shards_actions
from keyhop.cli.output import encodable
from keyhop.cli.progress import StatusLine
from keyhop.cli.session import Stop
from keyhop.cli.shards_actions import (
    ShardsCommand,
    escaped,
    history_chart,
    key_json,
    keys_table,
    phase_text,
    show_text,
    shown,
)
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.errors import CannotStart
from keyhop.sharding.key.names import Names
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.schema import Schema
from keyhop.sharding.key.shards import DRAINING, Phase, Shards
from keyhop.sharding.manage import KeyShards
from rich.console import Console

from testing.databases import keyhop

NASTY = "\x1b[31m/f\n.txt\u202e[bold]\\\u009b"
T0 = 1_795_000_000
GROWN = Shards(
    8, T0 + 86_400, ((T0, 1), (T0 + 8, 2), (T0 + 20, 16), (T0 + 86_400, 8)), 8, 8, Phase.STEADY
)


def test_keys_are_shown_without_what_a_terminal_would_obey() -> None:
    assert shown({"S": NASTY}) == r"\x1b[31m/f\n.txt\u202e[bold]\\\x9b"
    assert shown({"S": "/päth/日本/🔑"}) == "/päth/日本/🔑"
    assert shown({"B": b"\xff\x00"}) == "/wA="
    assert escaped("\\n") != escaped("\n"), "two keys look the same"


def test_the_table_takes_no_key_for_markup() -> None:
    one = KeyShards("[red]x[/red]", GROWN, {}, 2, "quiet")
    out = io.StringIO()
    keys = [replace(one, key=key) for key in ("[red]x[/red]", ":smile: [/]", NASTY)]
    table = keys_table(keys, T0 + 90_000)
    Console(file=out, width=200, markup=False, highlight=False, emoji=False).print(table)
    text = out.getvalue()
    assert "[red]x[/red]" in text
    assert ":smile: [/]" in text
    assert not {"\x1b", "\u202e", "\u009b"} & set(text)
    assert "8  steady  2026-11-" in text


@pytest.mark.parametrize("bar", [shards_actions.BAR, "#"])
def test_the_history_is_a_chart_of_steps(bar: str) -> None:
    lines = history_chart(GROWN, T0 + 90_000, bar)
    assert [line.count(bar) for line in lines] == [1, 2, 16, 8]
    assert lines[0].split()[1:] == ["11:06:40", "1", bar, "for", "8", "s"] or "for 8 s" in lines[0]
    assert "for 12 s" in lines[1]
    assert lines[3].endswith("for 60 min until now")
    assert len({line.index("for ") for line in lines}) == 1, "the columns do not line up"


def test_a_chart_of_many_shards_stays_narrow_and_of_no_history_has_one_step() -> None:
    many = Shards(1000, T0, ((T0 - 9, 1), (T0, 1000)), 1, 1000, Phase.ANNOUNCED)
    assert max(map(len, history_chart(many, T0 + 1))) < 90
    assert history_chart(many, T0 + 1)[0].count(shards_actions.BAR) == 1
    (line,) = history_chart(Shards(3, T0, (), 3, 3), T0 - 50)
    assert line.count(shards_actions.BAR) == 3
    assert "for 0 s" in line, "a clock that is behind"
    assert "epoch" in history_chart(Shards(1, 10**18, (), 1, 1), T0)[0]


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_is_explained(phase: Phase) -> None:
    told = phase_text(Shards(2, T0, (), 2, 5, phase))
    assert len(told) > 20
    if phase in DRAINING - {Phase.CLOSING}:
        assert "shards 3 to 5" in told
    one = KeyShards(NASTY, Shards(2, T0, ((T0, 2),), 2, 5, phase), {T0 // 60: 120.0}, 1, "quiet")
    text = show_text(one, T0 + 3_600)
    assert f"phase      {phase}: {told}" in text
    assert "would do   1 shard: quiet" in text
    assert "2.0 write units a second" in text
    assert not {"\x1b", "\u202e"} & set(text)


def test_what_programs_get() -> None:
    told = key_json(KeyShards(b"\xff", GROWN, {5: 2.0}, 2, "quiet"))
    assert told["key"] == {"B": "/w=="}
    assert (told["shards"], told["would_do"], told["traffic"]) == (8, 2, {"5": 2.0})
    assert told["history"][-1] == {"at": T0 + 86_400, "shards": 8}
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("calculated", [True, False])
@pytest.mark.parametrize("hash_", ["jump", "modulo"])
@pytest.mark.parametrize("append_only", [True, False])
def test_the_placement_is_taken_from_the_metadata(
    calculated: bool, hash_: str, append_only: bool
) -> None:
    placement = Placement(calculated, hash_, append_only)  # type: ignore[arg-type]
    assert Placement.parse(placement.text("--")) == (placement, "--")


def test_a_placement_of_a_later_version_is_refused() -> None:
    with pytest.raises(CannotStart, match="'by moonlight _', which this version does not know"):
        ShardsCommand.agreed(
            ShardsCommand.__new__(ShardsCommand), replace(GROWN, placement="by moonlight _")
        )


def parsed(type_: str, text: str, base64: bool = False):
    table = ShardsCommand.__new__(ShardsCommand)
    table.options = argparse.Namespace(key=text, base64=base64)
    attribute = KeyAttribute("p", type_)  # type: ignore[arg-type]
    table.schema = Schema("t", attribute, KeyAttribute("s", "S"), Names(attribute.type))
    return table.key()


def test_keys_as_they_are_given() -> None:
    assert parsed("S", "/f.txt") == {"S": "/f.txt"}
    assert parsed("S", "L2YKLnR4dA==", base64=True) == {"S": "/f\n.txt"}
    assert parsed("B", "/wA=", base64=True) == {"B": b"\xff\x00"}
    wrong = [("B", "/f", False), ("B", "?", True), ("S", "/w==", True), ("S", "", False)]
    for type_, text, base64 in [
        *wrong,
        ("S", "x" * 2048, False),
        ("S", "\udcff", False),
        ("S", "!keyhop-total", False),
    ]:
        with pytest.raises(CannotStart):
            parsed(type_, text, base64)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--quiet"], "Missing command"),
        (["list"], "TABLE"),
        (["list", "T"], "--metadata"),
        (["show", "T", "--metadata", "m"], "KEY"),
        (["add", "T", "k", "--metadata", "m", "--count", "0"], "whole number from 1 to 999"),
        (["drain", "T", "k", "--metadata", "m"], "give either --shards M or --call-off"),
        (["drain", "T", "k", "--metadata", "m", "--shards", "0"], "whole number from 1"),
        (["drain", "T", "k", "--metadata", "m", "--shards", "1", "--call-off"], "give either"),
    ],
)
def test_a_wrong_input_is_told_in_one_line(arguments: list[str], says: str) -> None:
    result = keyhop("shards", *arguments)
    assert (result.status, result.out) == (2, b"")
    assert says in result.err
    assert result.err.count("\n") == 1


def test_help_teaches() -> None:
    text = keyhop("shards", "--help").out.decode()
    for word in ("examples", "keyhop shards drain Audit", "--base64", "exit status", "hot"):
        assert word in text
    drain = " ".join(keyhop("shards", "drain", "--help").out.decode().split())
    for word in ("--call-off", "--shards M", "four write units", "--placement"):
        assert word in drain


def test_the_teller_repeats_itself_only_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    teller = StatusLine(quiet=False)
    told = ((0.0, "a", "1"), (1.0, "a", "2"), (2.0, "b", "3"), (8.0, "b", "4"))
    for now.seconds, kind, text in told:
        teller.now(kind, text)
    quiet = StatusLine(quiet=True)
    quiet.now("a", "no")
    quiet.say("no")
    assert capsys.readouterr().err == "1\n3\n4\n"


def test_a_chart_for_a_terminal_without_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_only)
    assert shards_actions._bar() == "#"
    assert encodable("ä") == "\\xe4"


def test_an_interrupted_wait_ends_at_once() -> None:
    from threading import Event

    from keyhop.dynamodb.requester import Stopped

    table = ShardsCommand.__new__(ShardsCommand)
    table.stop = Stop(Event())
    table.wait(0)
    table.stop.event.set()
    with pytest.raises(Stopped):
        table.wait(1_000)
