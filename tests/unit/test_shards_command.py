"""Check the output of `keyhop shards` about a key, and its flags, without a database."""

import json
from types import SimpleNamespace

import pytest
from keyhop import KeyShards
from keyhop.cli import progress
from keyhop.cli.progress import StatusLine
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.shards import DRAINING, Phase, Shards

from testing.databases import keyhop

NASTY = "\x1b[31m/f\n.txt\u202e[bold]\\\u009b"
T0 = 1_795_000_000
GROWN = Shards(
    8, T0 + 86_400, ((T0, 1), (T0 + 8, 2), (T0 + 20, 16), (T0 + 86_400, 8)), 8, 8, Phase.STEADY
)
BAR = "\u2587"


def chart(shards: Shards, now: float, *bar: str) -> list[str]:
    """Return the lines of the history of a key."""
    text = KeyShards("/f", shards, {}, read_at=now).to_text(*bar)
    return text.split("are kept)\n")[1].splitlines()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (NASTY, r"\x1b[31m/f\n.txt\u202e[bold]\\\x9b"),
        ("/päth/日本/🔑", "/päth/日本/🔑"),
        (b"\xff\x00", "/wA="),
        ("\\n", r"\\n"),
        ("\n", r"\n"),
    ],
)
def test_keys_are_shown_without_control_characters(key: str | bytes, text: str) -> None:
    assert KeyShards(key, GROWN, {}).to_text().splitlines()[0] == f"{text}: 8 shards"


@pytest.mark.parametrize("bar", [BAR, "#"])
def test_the_history_is_a_chart_of_steps(bar: str) -> None:
    lines = chart(GROWN, T0 + 90_000, bar)
    assert [line.count(bar) for line in lines] == [1, 2, 16, 8]
    assert "for 8 s" in lines[0]
    assert "for 12 s" in lines[1]
    assert lines[3].endswith("for 60 min until now")
    assert len({line.index("for ") for line in lines}) == 1, "the columns do not line up"


def test_a_chart_is_narrow_and_has_one_step_without_a_history() -> None:
    many = Shards(1000, T0, ((T0 - 9, 1), (T0, 1000)), 1, 1000, Phase.ANNOUNCED)
    assert max(map(len, chart(many, T0 + 1))) < 94
    assert chart(many, T0 + 1)[0].count(BAR) == 1
    (line,) = chart(Shards(3, T0, (), 3, 3), T0 - 50)
    assert line.count(BAR) == 3
    assert "for 0 s" in line, "the clock is behind"
    assert "epoch" in chart(Shards(1, 10**18, (), 1, 1), T0)[0]


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_is_explained(phase: Phase) -> None:
    shards = Shards(2, T0, ((T0, 2),), 2, 5, phase)
    key = KeyShards(NASTY, shards, {T0 // 60: 120.0}, 1, "quiet", T0 + 3_600)
    text = key.to_text()
    (line,) = (line for line in text.splitlines() if line.startswith("  phase "))
    explained = line.removeprefix(f"  phase      {phase}: ")
    assert len(explained) > 20
    if phase in DRAINING - {Phase.CLOSING}:
        assert "shards 3 to 5" in explained
    assert "would do   1 shard: quiet" in text
    assert "2.0 write units a second" in text
    assert not {"\x1b", "\u202e"} & set(text)


def test_the_json_of_a_key() -> None:
    report = KeyShards(b"\xff", GROWN, {5: 2.0}, 2, "quiet").to_json()
    assert report["key"] == {"B": "/w=="}
    assert (report["shards"], report["would_do"], report["traffic"]) == (8, 2, {"5": 2.0})
    assert report["history"][-1] == {"at": T0 + 86_400, "shards": 8}
    assert json.loads(json.dumps(report)) == report


@pytest.mark.parametrize("calculated", [True, False])
@pytest.mark.parametrize("hash_", ["jump", "modulo"])
@pytest.mark.parametrize("append_only", [True, False])
def test_the_placement_is_read_from_the_metadata(
    calculated: bool, hash_: str, append_only: bool
) -> None:
    placement = Placement(calculated, hash_, append_only)  # type: ignore[arg-type]
    assert Placement.parse(placement.text("--")) == (placement, "--")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--quiet"], "Missing command"),
        (["list"], "TABLE"),
        (["show", "T", "--metadata", "m"], "KEY"),
        (["add", "T", "k", "--metadata", "m", "--count", "0"], "whole number from 1 to 999"),
        (["drain", "T", "k", "--metadata", "m"], "give either --shards M or --call-off"),
        (["drain", "T", "k", "--metadata", "m", "--shards", "0"], "whole number from 1"),
        (["drain", "T", "k", "--metadata", "m", "--shards", "1", "--call-off"], "give either"),
        (["drain", "T", "k", "--call-off", "--dry-run"], "--call-off has no --dry-run"),
    ],
)
def test_a_wrong_input_is_reported_in_one_line(arguments: list[str], says: str) -> None:
    result = keyhop("shards", *arguments)
    assert (result.status, result.out) == (2, b"")
    assert says in result.err
    assert result.err.count("\n") == 1


def test_help_has_examples_and_explanations() -> None:
    text = keyhop("shards", "--help").out.decode()
    for word in ("examples", "keyhop shards drain Audit", "--base64", "exit status", "hot"):
        assert word in text
    drain = " ".join(keyhop("shards", "drain", "--help").out.decode().split())
    for word in ("--call-off", "--shards M", "four write units", "--placement"):
        assert word in drain


def test_the_status_line_repeats_a_kind_only_after_some_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    line = StatusLine(quiet=False)
    messages = ((0.0, "a", "1"), (1.0, "a", "2"), (2.0, "b", "3"), (8.0, "b", "4"))
    for now.seconds, kind, text in messages:
        line.now(kind, text)
    quiet = StatusLine(quiet=True)
    quiet.now("a", "no")
    quiet.say("no")
    assert capsys.readouterr().err == "1\n3\n4\n"
