"""Check the progress line in a terminal, and how figures are formatted."""

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl

import pytest
from keyhop.cli.keys_actions import plan_lines
from keyhop.cli.output import folded
from keyhop.cli.progress import fitting, progress_text
from keyhop.dynamodb.units import US_EAST_1
from keyhop.jobs.estimate import Estimate
from keyhop.jobs.layout import Layout
from keyhop.jobs.price import Cost
from keyhop.public.runs import share_done
from keyhop.scan.statistics import Findings, Forecast, Interval
from keyhop.wording import duration

from testing.databases import Database
from testing.standin.server import running


def test_a_time_span_has_a_suitable_unit() -> None:
    spans = [duration(s) for s in (0.4, 89, 90, 5399, 5400, 172_799, 172_800)]
    assert spans == ["0 s", "89 s", "2 min", "90 min", "1.5 h", "48.0 h", "2 days"]


def test_state_and_eta_come_first_then_results_then_units() -> None:
    parts = progress_text(1, 12.4, 3.3, (0, 1), None, 0)
    assert parts == ["reading", "ETA unknown", "1 key", "12 RRU", "3 RRU/s", "0 of 1 segment"]
    parts = progress_text(
        5, 1, 1, (3, 8), 120, 1, state="building", sentinels=1234, writes=2468, write_rate=500
    )
    assert parts[:4] == ["building", "ETA 2 min", "1,234 sentinels", "throttled 1 time"]
    assert parts[4:] == ["2,468 WRU", "500 WRU/s", "1 RRU", "1 RRU/s", "5 keys", "3 of 8 segments"]


@pytest.mark.parametrize(
    ("ended", "key_count", "expected", "share"),
    [
        (0, 0, None, 0),
        (0, 50, 100, 0.25),  # a quarter of the segments was started
        (4, 50, 100, 0.5),
        (6, 50, 100, 0.75),  # fewer keys than expected
        (6, 120, 100, 0.75),  # more keys than expected
        (8, 90, 100, 1),
    ],
)
def test_the_share_done_never_exceeds_the_started_segments(
    ended: int, key_count: int, expected: float | None, share: float
) -> None:
    assert share_done(ended, 8, 2, key_count, expected) == share


def test_a_narrow_line_omits_the_least_important_parts() -> None:
    parts = ["reading", "ETA 2 min", "1,234,567 keys", "9,999 RRU"]
    assert fitting(parts, 100) == "reading, ETA 2 min, 1,234,567 keys, 9,999 RRU"
    assert fitting(parts, 34) == "reading, ETA 2 min, 1,234,567 keys"
    assert fitting(parts, 33) == "reading, ETA 2 min"
    assert fitting(parts, 1) == "reading"


def test_a_long_line_continues_under_its_text() -> None:
    line = "  method    skip: the table has a sort key"
    assert folded(line, 80) == line
    assert folded(line, 30) == "  method    skip: the table\n            has a sort key"
    assert folded("one two three", 8) == "one two\nthree"


PLAN = {
    "table": "T",
    "index": None,
    "method": "skip",
    "reason": "it has a sort key",
    "layout": Layout(1, 1),
    "spent_units": 1.0,
    "spent_requests": 1,
    "sampled": True,
    "prices": US_EAST_1,
}


def test_the_plan_says_why_the_index_is_not_read_and_drops_a_column() -> None:
    keys = Interval(1234.0, 1000.0, 1500.0)
    findings = Findings(keys, Forecast(0.5, 1.0), 0.5, 500.0, 0.004)
    costs = {name: Cost(keys, 10.0, 1.0) for name in ("skip", "published")}
    estimate = Estimate(**PLAN, findings=findings, costs=costs)
    wide = list(plan_lines(estimate, "it is CREATING", 80))
    assert [line.split()[0] for line in wide[2:6]] == ["method", "skip", "index", "Limit=1"]
    assert "1,000 to 1,500" in wide[3]
    assert "index: not read, it is CREATING." in wide
    narrow = list(plan_lines(estimate, "it is CREATING", 50))
    assert max(map(len, narrow[2:6])) <= 50
    assert "1,000 to 1,500" not in narrow[3]
    assert not any("index" in line for line in plan_lines(estimate, None, 80))


@pytest.mark.prove
@pytest.mark.parametrize("columns", [50, 80])
def test_bar_state_and_eta_fit_on_a_terminal_without_colours(columns: int) -> None:
    """The run takes more than a second, on a terminal of `columns` columns, with NO_COLOR."""
    with running() as server:
        Database("stand_in", server.url).collections("T", [3] * 60, filling=1500)
        command = ["keys", "T", "--endpoint-url", server.url, "--max-read-rate", "20"]
        output = on_terminal(columns, *command)
    lines = [line for line in output.split("\r") if "ETA" in line]
    assert lines, output
    for line in lines:
        assert re.search(r"^[━╸╺ ]+ +\d+% reading, ETA \S+", line), output
    assert max(map(len, lines)) <= columns
    assert not re.search(r"\x1b\[[\d;]*3\d", output), "no colours"


def on_terminal(columns: int, *command: str) -> str:
    """Return the standard error of a command on a terminal; keys go to a pipe."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm-256color", "NO_COLOR": "1", "AWS_REGION": "us-east-1"}
    with subprocess.Popen(
        [sys.executable, "-m", "keyhop", *command],
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env=environment,
    ):
        os.close(follower)
        output = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # Linux: the other end has gone
                break
            if not chunk:
                break
            output += chunk
    os.close(leader)
    return re.sub(r"\x1b\[[\d;?]*[A-Zhl]", "", output.decode())
