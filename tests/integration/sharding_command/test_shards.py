"""`keyhop shards` on a table of the library, on DynamoDB Local."""

import base64
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace

import pytest
from keyhop.cli.main import main
from keyhop.public import shards as public_shards
from keyhop.public.shards import Shards
from keyhop.sharding.drain import Drain
from keyhop.sharding.key.shards import Phase, to_item
from keyhop.wording import counted

from testing.databases import Database, Result, keyhop
from testing.servers import ROOT
from testing.simulation.service import failure
from testing.standin.server import StandIn
from tests.integration.sharding import single
from tests.integration.sharding.single import JumpingClock

NASTY = "/evil\x1b[2J[red]:key:[/]\n_3"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    """The clock of the command and of the tables of a test. No wait takes real time."""
    clock = JumpingClock()
    monkeypatch.setattr(Shards, "_clock", clock)
    return clock


class Place(single.Place):
    """A sharded table with the clock of the command."""

    def __init__(self, database: Database, name: str, type_: str = "S") -> None:
        super().__init__(database, name, partition=type_)
        self.type, self.clock = type_, Shards._clock

    def write(self, key, count: int, **more) -> None:
        table = self.table(**more)
        for n in range(count):
            table.put_item(Item={"path": key, "at": f"{n:05}", "n": n})
        table.close()

    def set(self, key, **more) -> None:
        """Change a key's metadata, as if it had changed long ago."""
        item = {"path": {self.type: key}, **to_item(replace(self.shards(key), **more))}
        self.database.client.put_item(TableName=self.metadata, Item=item)

    def run(self, action: str, *arguments: str) -> Result:
        options = ("--metadata", self.metadata, "--endpoint-url", self.database.url)
        yes = ("--yes",) if action in ("add", "drain") else ()
        return keyhop("shards", action, self.name, *arguments, *yes, *options)


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def spread_items(place: Place, key, shards: int, items: int = 40, **settings) -> None:
    """Write a key with so many shards, and spread its items over all of them."""
    place.write(key, 1, **settings)
    counts = range(1, shards + 1)
    place.set(
        key,
        number=shards,
        writable=shards,
        readable=shards,
        last_updated=1_000_000 + shards,
        history=tuple((1_000_000 + count, count) for count in counts),
        placed_by=frozenset(counts),
    )
    place.write(key, items, **settings)


def test_list(place: Place) -> None:
    place.write("/one", 1)
    spread_items(place, "/hot", 4)
    spread_items(place, NASTY, 2)
    text = place.run("list").out.decode()
    assert [line.split()[0] for line in text.splitlines()[1:]] == [
        "/hot",
        r"/evil\x1b[2J[red]:key:[/]\n_3",
    ]
    assert " 4  steady  1970-01-12 13:46:44" in text
    assert "\x1b" not in text
    keys = json.loads(place.run("list", "--all", "--format", "typed-json").out)
    assert [key["key"]["S"] for key in keys] == ["/hot", NASTY, "/one"]
    assert [key["shards"] for key in keys] == [4, 2, 1]
    assert [key["would_do"] for key in keys] == [1, 1, None]


def test_list_of_no_keys_says_so(place: Place) -> None:
    assert "is empty" in place.run("list", "--all").out.decode()
    place.write("/one", 1)
    assert "has no key with more than one shard" in place.run("list").out.decode()
    assert json.loads(place.run("list", "--format", "typed-json").out) == []


def test_long_keys_are_complete_in_a_pipe(place: Place) -> None:
    spread_items(place, "/long" + "x" * 900, 2)
    assert "x" * 900 + " " in place.run("list").out.decode()


def test_show(place: Place) -> None:
    spread_items(place, "/hot", 4)
    result = place.run("show", "/hot")
    text = result.out.decode()
    assert (result.status, result.err) == (0, "")
    assert "/hot: 4 shards\n" in text
    assert "phase      steady: nothing is being changed: new items go to shards 1 to 4" in text
    assert "placement  calculated jump _" in text
    assert "would do   1 shard: the busiest minute" in text
    assert [line.count("\u2587") for line in text.splitlines()[-4:]] == [1, 2, 3, 4]
    key = json.loads(place.run("show", "/hot", "--format", "typed-json").out)
    assert (key["key"], key["shards"], key["settle_seconds"]) == ({"S": "/hot"}, 4, 5.0)
    assert json.loads(place.run("show", "/hot", "-f", "json").out) == {**key, "key": "/hot"}
    header, row = place.run("list", "-f", "csv").out.decode().splitlines()
    assert (header.split(",")[:2], row.split(",")[:2]) == (["key", "shards"], ["/hot", "4"])


def test_show_of_an_unknown_key(place: Place) -> None:
    spread_items(place, "/hot", 4)
    result = place.run("show", "/cold\x1b[2J")
    assert result.status == 2
    assert r"has no shard metadata of /cold\x1b[2J: nothing was written" in result.err
    physical = place.run("show", "/hot_3")
    assert physical.status == 2
    assert "It is shard 3 of /hot: give that, the logical key." in physical.err


def test_a_binary_key_is_given_in_base64(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name, "B")
    place.write(b"\xff\x00", 3)
    result = place.run("show", base64.b64encode(b"\xff\x00").decode(), "--base64")
    assert result.out.decode().startswith("/wA=: 1 shard\n")
    refused = place.run("show", "/wA=")
    assert refused.status == 2
    assert "give KEY in base64, with --base64" in refused.err


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (["L2YKLnR4dA==", "--base64"], r"no shard metadata of /f\n.txt: nothing was written"),
        (["?", "--base64"], "KEY ? is not base64"),
        (["/w==", "--base64"], "KEY is not UTF-8"),
    ],
)
def test_errors_name_the_key_or_its_encoding(place: Place, key: list[str], message: str) -> None:
    result = place.run("show", *key)
    assert (result.status, message in result.err) == (2, True)


def test_a_chart_for_a_terminal_without_unicode(place: Place) -> None:
    spread_items(place, "/hot", 4)
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with redirect_stdout(ascii_only):
        assert (
            main(["shards", "show", place.name, "/hot", "--endpoint-url", place.database.url]) == 0
        )
    ascii_only.seek(0)
    assert ascii_only.read().splitlines()[-1].count("#") == 4


def test_a_dry_run_shows_the_change_and_the_metadata_table(place: Place) -> None:
    spread_items(place, "/f", 3)
    before = place.shards("/f")
    for action, more, after in (("add", (), 4), ("drain", ("--shards", "1"), 1)):
        text = place.run(action, "/f", *more, "--dry-run").out.decode()
        assert text.startswith(f"/f would have {counted(after, 'shard')}; now 3\n")
        assert f"  metadata  {place.metadata}, as given\n" in text
        change = json.loads(place.run(action, "/f", *more, "--dry-run", "-f", "json").out)
        assert (change["dry_run"], change["before"], change["after"]) == (True, 3, after)
    assert "about " in text
    assert place.shards("/f") == before
    listing = keyhop("shards", "list", place.name, "--endpoint-url", place.database.url)
    assert "/f" in listing.out.decode()
    change = json.loads(place.run("drain", "/f", "--shards", "1", "-f", "json").out)
    assert (change["key"], change["dry_run"], change["after"]) == ("/f", False, 1)


def test_add(place: Place) -> None:
    place.write("/f", 40)
    result = place.run("add", "/f", "--count", "3")
    assert result.status == 0
    assert "until the last change has settled" not in result.err, "nobody knows a new key otherwise"
    assert (
        "/f: 4 shards from now on. Readers read them at once; writers use them after 5 s"
        in result.err
    )
    assert result.err.endswith("Writers use 4 shards of /f now.\n")
    shards = place.shards("/f")
    assert (shards.number, shards.readable, shards.writable) == (4, 4, 4)
    place.write("/f", 40)
    assert len(list(place.table().query(key="/f", consistent=True))) == 40


def test_add_without_waiting(place: Place, clock: JumpingClock) -> None:
    """It waits for the length of a step if the key is not new."""
    spread_items(place, "/f", 2)
    before = clock.now
    result = place.run("add", "/f", "--no-wait")
    assert "waiting 5.0 s until the last change has settled" in result.err
    assert (result.status, clock.now - before) == (0, 5.0)
    shards = place.shards("/f")
    assert (shards.number, shards.writable, shards.phase) == (3, 2, Phase.ANNOUNCED)


def test_two_concurrent_additions_add_once(place: Place, monkeypatch) -> None:
    """Both commands want 3 shards instead of 1. The later one finds 3 shards."""
    spread_items(place, "/f", 1)
    add_shards = public_shards.add_shards
    results: list[Result] = []

    def late(*arguments):
        if not results:
            results.append(Result(0, b"", ""))
            results.append(place.run("add", "/f", "--count", "2", "--no-wait"))
        return add_shards(*arguments)

    monkeypatch.setattr(public_shards, "add_shards", late)
    assert place.run("add", "/f", "--count", "2").status == 0
    assert results[1].status == 0
    assert place.shards("/f").number == 3


def test_add_to_a_new_key_uses_the_placement_of_the_table(place: Place) -> None:
    refused = place.run("add", "/new")
    assert refused.status == 2
    assert "how writers choose shards: give --placement" in refused.err
    added = place.run("add", "/first", "--placement", "random", "--append-only", "--quiet")
    assert (added.status, added.err) == (0, "")
    assert place.run("add", "/second", "--quiet").status == 0
    for key in ("/first", "/second"):
        assert place.shards(key).placement == "append-only random jump _"
        assert place.shards(key).writable == 2


def test_the_maximum_number_of_shards(place: Place) -> None:
    place.write("/f", 1)
    result = place.run("add", "/f", "--count", "999")
    assert result.status == 0
    result = place.run("add", "/f")
    assert result.status == 2
    assert "The key has 1,000 shards, and 1,000 are the maximum" in result.err


@pytest.mark.parametrize("more", [{}, {"placement": "random"}, {"hash": "modulo"}])
def test_drain(place: Place, more: dict) -> None:
    """Afterwards each item is stored once, in the remaining shards."""
    spread_items(place, "/f", 5, items=60, **more)
    result = place.run("drain", "/f", "--shards", "2")
    assert result.status == 0
    shards = place.shards("/f")
    assert (shards.number, shards.readable, shards.phase) == (2, 2, Phase.STEADY)
    assert "Draining /f to 2 shards" in result.err
    assert "/f has 2 shards now:" in result.err
    items = place.database.client.scan(TableName=place.name)["Items"]
    assert sorted(int(item["n"]["N"]) for item in items) == list(range(60))
    assert {item["path"]["S"] for item in items} <= {"/f_1", "/f_2"}
    repeated = place.run("drain", "/f", "--shards", "2")
    assert repeated.status == 0
    assert "there is nothing to drain" in repeated.err
    visible = place.table(**more).query(key="/f", consistent=True)
    assert [item["n"] for item in visible] == list(range(60))


def test_a_drain_that_is_called_off(place: Place, clock: JumpingClock) -> None:
    spread_items(place, "/f", 4)
    drain = Drain(place.table())
    while drain.step("/f", shards=1).shards.phase is not Phase.CLOSING:
        clock.sleep(5.0)
    refused = place.run("add", "/f")
    assert refused.status == 2
    assert "is being drained (closing)" in refused.err
    another = place.run("drain", "/f", "--shards", "3")
    assert another.status == 2
    assert "is being drained to 1 shard: go on with --shards 1, or call it off" in another.err
    result = place.run("drain", "/f", "--call-off")
    assert result.status == 0
    assert "/f: steady: nothing is being changed: new items go to shards 1 to 4." in result.err
    assert place.shards("/f").number == 4
    repeated = place.run("drain", "/f", "--call-off")
    assert (repeated.status, "No drain of /f is under way" in repeated.err) == (2, True)


@pytest.fixture
def slow(place: Place) -> Place:
    """A key in a drain with steps of a minute, so that a signal arrives during a step."""
    spread_items(place, "/f", 3)
    place.set("/f", settle=60.0, number=1, before=3, phase=Phase.CLOSING)
    return place


@pytest.mark.prove
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_drain_can_be_started_again(
    slow: Place, number: signal.Signals, status: int
) -> None:
    options = ("--metadata", slow.metadata, "--endpoint-url", slow.database.url, "--yes")
    arguments = ["shards", "drain", slow.name, "/f", "--shards", "1", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "testing.patient", *arguments],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    line = ""
    while "closing:" not in line:
        line = process.stderr.readline()
        assert line, "it ended too early"
    process.send_signal(number)
    rest = process.stderr.read()
    assert process.wait() == status
    assert "Interrupted. Start the same command again to go on" in rest
    assert slow.shards("/f").phase is Phase.CLOSING
    slow.set("/f", settle=5.0, last_updated=1_000_009)
    assert slow.run("drain", "/f", "--shards", "1").status == 0
    assert slow.shards("/f").readable == 1


def test_unsuitable_and_missing_tables_are_refused(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name)
    for name, message in (
        ("no-such-table", "There is no table 'no-such-table'"),
        (place.name, "is not the shard-metadata table of this table"),
    ):
        arguments = (place.name, "--metadata", name, "--endpoint-url", dynamodb.url)
        result = keyhop("shards", "list", *arguments)
        assert (result.status, result.out) == (2, b"")
        assert message in result.err
    arguments = (place.metadata, "--metadata", place.metadata, "--endpoint-url", dynamodb.url)
    assert "has no sort key" in keyhop("shards", "list", *arguments).err
    numbers = f"{table_name}-n"
    dynamodb.create(numbers, ("n", "N"), ("at", "S"))
    arguments = (numbers, "--metadata", place.metadata, "--endpoint-url", dynamodb.url)
    assert "The partition key is a number (N)" in keyhop("shards", "list", *arguments).err


def test_errors_of_the_service_are_one_line(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.create(table_name, ("path", "S"), ("at", "S"))
    strict.create("meta", ("path", "S"), None)

    def fault(operation: str, request) -> None:
        if operation == "Scan":
            raise failure("AccessDeniedException", "no \x1b[31m way")

    stand_in.fault = fault
    result = keyhop(
        "shards", "list", table_name, "--metadata", "meta", "--endpoint-url", strict.url
    )
    assert result.status == 2
    assert "Permission is missing: allow dynamodb:Scan on table 'meta'" in result.err
    assert "\x1b" not in result.err
    assert result.err.count("\n") == 1
