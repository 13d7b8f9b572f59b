"""A user who follows `keyhop rekey status` reaches the end, wherever a command was killed.

Each command of a re-key is killed before or after each of its requests that change something. Then
the next command that the status names is run, again and again, until the re-key reaches its phase.
"""

import itertools
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.transport import Client
from keyhop.public import rekey
from keyhop.rekey.side.layout import TURNED

from testing.marks import prove, prove_long
from tests.integration.rekey.faults import CHANGES, Doom, Killed
from tests.integration.rekey.pairs import Pairs, create_rekey, items_of, orders

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("nothing_waits")]

EVERY = pytest.mark.parametrize("every", [prove(9), prove_long(1)])
"""The command is killed at every n-th moment."""

MOST_COMMANDS = 8
WAITS_SECONDS = 400.0


@contextmanager
def doomed(doom: Doom) -> Iterator[None]:
    """Kill this process as `doom` says; each request that changes something is a step."""
    call = Client.call

    def counted(self: Client, operation: str, **parameters: Any) -> Any:
        changes = operation.startswith(CHANGES)
        return doom.step(lambda: call(self, operation, **parameters), changes)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Client, "call", counted)
        yield


def run(pairs: Pairs, doom: Doom, *command: Any) -> None:
    with doomed(doom):
        try:
            pairs.rekey(*command)
        except Killed:
            assert doom.is_over


@dataclass
class User:
    """A user who runs the commands that the status names."""

    pairs: Pairs
    template: Path
    actions: list[str] = field(default_factory=list)
    waited: float = 0.0

    def follow(self, *until: str) -> dict[str, Any]:
        """Run the next command until the re-key is in one of these phases."""
        for _ in range(MOST_COMMANDS):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(rekey, "time", lambda: time.time() + self.waited)
                text = self.pairs.rekey("status")
                if text.status:
                    return {"phase": text.err}
                status = self.pairs.status()
                if status["phase"] in until:
                    return status
                self._run(status["next"])
        raise AssertionError(f"it does not end: {self.actions}")

    def _run(self, command: str) -> None:
        """Run a command, with its dry run first if it names one. `status` stands for a wait."""
        _, _, action, source, *flags = shlex.split(command)
        assert source == self.pairs.source
        flags = [flag for flag in flags if flag not in ("--to", self.pairs.destination)]
        if action == "create":
            flags = [str(self.template) if flag == "FILE" else flag for flag in flags]
            flags += ["--partition-key", "day"]  # the arguments of the first create
        self.actions.append(action)
        if action == "status":
            self.waited += WAITS_SECONDS
        if "--dry-run" in flags:
            assert self.pairs.rekey(action, *flags).status == 0
            flags.remove("--dry-run")
        result = self.pairs.rekey(action, *flags)
        assert result.status in (0, 3), (command, result.err)


def moments(pairs: Pairs, every: int, prepare: Callable[[], None], *command: Any) -> Iterator[Doom]:
    """Kill the command at each moment, and yield after each kill."""
    prepare()
    uninterrupted = Doom()
    run(pairs, uninterrupted, *command)
    for at, after in itertools.product(range(1, uninterrupted.steps + 1, every), (False, True)):
        prepare()
        doom = Doom(at, after)
        run(pairs, doom, *command)
        yield doom


def remove(pairs: Pairs) -> None:
    for name in (pairs.source, pairs.destination, f"{pairs.destination}.rekey"):
        if name in pairs.database.tables():
            pairs.database.client.delete_table(TableName=name)


def delete_one(pairs: Pairs) -> None:
    """Delete an item of the destination, which a verification then repairs."""
    item = items_of(pairs, pairs.destination)[0]
    key = {name: item[name] for name in ("day", "order")}
    pairs.database.client.delete_item(TableName=pairs.destination, Key=key)


@EVERY
def test_create(pairs: Pairs, template: Path, every: int) -> None:
    def prepare() -> None:
        remove(pairs)
        orders(pairs)

    create = ("create", "--template", template, "--partition-key", "day")
    for _ in moments(pairs, every, prepare, *create):
        User(pairs, template).follow("verified")


@EVERY
def test_start(pairs: Pairs, template: Path, every: int) -> None:
    def prepare() -> None:
        remove(pairs)
        create_rekey(pairs, template)

    for _ in moments(pairs, every, prepare, "start"):
        User(pairs, template).follow("verified")


@EVERY
def test_verify(pairs: Pairs, template: Path, every: int) -> None:
    def prepare() -> None:
        remove(pairs)
        create_rekey(pairs, template)
        assert pairs.rekey("start").status == 0
        delete_one(pairs)

    for _ in moments(pairs, every, prepare, "verify"):
        User(pairs, template).follow("verified")


@EVERY
def test_a_verification_in_a_directory_is_resumed(
    pairs: Pairs, template: Path, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kills include those before the start of the first run, and between the two runs."""
    monkeypatch.setattr(f"{__name__}.CHANGES", (*CHANGES, "scan", "describe", "get", "batch"))
    run_directory = tmp_path / "run"

    def prepare() -> None:
        remove(pairs)
        shutil.rmtree(run_directory, ignore_errors=True)
        create_rekey(pairs, template)
        assert pairs.rekey("start").status == 0
        delete_one(pairs)

    for doom in moments(pairs, every, prepare, "verify", "--output", run_directory):
        result = pairs.rekey("verify", "--resume", run_directory)
        if result.status == 2:
            assert "holds no run that could be resumed" in result.err, doom
            assert not (run_directory / "digests" / "run.json").exists(), (doom, result.err)
            assert pairs.rekey("verify", "--output", run_directory).status == 3
        assert pairs.status()["phase"] == "verified", (doom, result.err)
        assert len(items_of(pairs, pairs.destination)) == 30


@EVERY
@pytest.mark.parametrize("more", [(), ("--keep-new",)])
def test_cancel(pairs: Pairs, template: Path, every: int, more: tuple[str, ...]) -> None:
    def prepare() -> None:
        remove(pairs)
        create_rekey(pairs, template)
        assert pairs.rekey("start").status == 0

    for _ in moments(pairs, every, prepare, "cancel", *more):
        status = User(pairs, template).follow("verified")
        if status["phase"] != "verified":  # the cancel had begun
            assert "There is no re-key" in status["phase"]
            assert (pairs.destination in pairs.database.tables()) == bool(more)


@EVERY
@pytest.mark.parametrize("deletes", [False, True])
def test_complete(pairs: Pairs, template: Path, every: int, deletes: bool) -> None:
    def prepare() -> None:
        remove(pairs)
        create_rekey(pairs, template)
        assert pairs.rekey("start").status == 0
        control = pairs.side.control()
        assert pairs.side.swap(control, replace(control, serving="destination", turns=1))
        pairs.side.tell(TURNED, {"at": 0.0, "serving": "destination"})

    more = ("--delete-source", pairs.source) if deletes else ()
    for _ in moments(pairs, every, prepare, "complete", *more):
        user = User(pairs, template)
        had_begun = "ending" in user.pairs.rekey("status").out.decode()
        user.follow("verified")
        assert pairs.destination in pairs.database.tables()
        if had_begun or not deletes:
            assert (pairs.source in pairs.database.tables()) != deletes
