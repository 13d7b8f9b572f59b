"""What the checks found: each is one line, and a failed one does not end the suite."""

import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from keyhop.errors import KeyhopError

from tests.live.catalogue import CHECKS, Check


class Refused(Exception):
    """The suite does not begin, or cannot go on; the message is for the user."""


class Differs(Exception):
    """Something is not as Keyhop relies on; the message tells what was seen."""


def say(text: str) -> None:
    """Print; a terminal that is gone must not end the clean-up."""
    with suppress(OSError):
        print(text, flush=True)


def expect(condition: object, told: str) -> None:
    """Raises Differs, which tells what was seen, unless `condition` holds."""
    if not condition:
        raise Differs(told)


def expect_equal(seen: object, wanted: object, what: str) -> None:
    """Raises Differs unless both are the same."""
    expect(seen == wanted, f"{what}: {_short(seen)}, but {_short(wanted)} was expected")


def expect_keys(seen: Iterable[Any], wanted: set[Any]) -> None:
    """Raises Differs unless `seen` is each of `wanted` exactly once."""
    counted = Counter(seen)
    faults = {
        "missing": wanted - set(counted),
        "surplus": set(counted) - wanted,
        "more than once": {key for key, times in counted.items() if times > 1},
    }
    told = "; ".join(f"{len(keys)} {what}: {_short(keys)}" for what, keys in faults.items() if keys)
    expect(not told, f"of {len(wanted)} keys, {told}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def until(look: Callable[[], str | None], what: str, seconds: float, pause: float = 10.0) -> str:
    """Return what `look` returns, as soon as that is not None; raises Differs after `seconds`."""
    deadline = time.monotonic() + seconds
    while (told := look()) is None:
        expect(time.monotonic() < deadline, f"{what} did not come in {seconds:g} seconds")
        time.sleep(pause)
    return told


NOT_ASKED_FOR = "not among ONLY"
NOT_FINISHED = "not finished"
HEAD = "| check | claim | result | date | region | cost at most |"


@dataclass
class Report:
    """Prints each check as it ends; remembers those that failed, and those that were left out.

    lacks: what the other side cannot do, with the reason: what needs it is skipped. only: what was
    asked for; all, if that is nothing.
    """

    lacks: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=lambda: CHECKS)
    only: Collection[str] = ()
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    """By name, how a check that was made ended: with several tables, how the worst one did."""

    def check(self, name: str, look: Callable[[], str | None], on: str = "") -> None:
        """Make one check; what `look` returns is told beside it. on: which of several."""
        check = self.checks[name]
        if self.only and name not in self.only:
            return
        if check.needs in self.lacks:
            self.skip(name, self.lacks[check.needs])
            return
        title = f"{name}{f' [{on}]' if on else ''}: {check.shows}"
        began = time.monotonic()
        before = self.made.get(name)
        self.made[name] = NOT_FINISHED  # an interruption leaves it so
        try:
            note = look()
        except (Differs, BotoCoreError, ClientError, KeyhopError) as error:
            self._fail(name, title, f"{type(error).__name__}: {error}")
        except Exception as error:  # one broken check must not hide what the others would find
            traceback.print_exc()
            self._fail(name, title, f"{type(error).__name__}: {error}")
        else:
            self.made[name] = before or "holds"
            self.passed += 1
            seconds = time.monotonic() - began
            say(f"  ok      {title} ({seconds:.1f} s){f': {note}' if note else ''}")

    def skip(self, name: str, why: str) -> None:
        """Leave a check out, and say why."""
        if name not in self.skipped:
            self.skipped[name] = why
            say(f"  skipped {name}: {self.checks[name].shows}\n          {why}")

    def skip_the_rest(self, why: str) -> None:
        """All that were neither made nor left out."""
        for name in sorted(self.checks.keys() - self.made.keys() - self.skipped.keys()):
            self.skip(name, NOT_ASKED_FOR if self.only and name not in self.only else why)

    def _fail(self, name: str, title: str, why: str) -> None:
        self.made[name] = "**fails**"
        self.failed.append(title)
        say(f"  FAILED  {title}\n          {why}")

    def table(self, region: str, costs: Mapping[str, float]) -> str:
        """Return what was shown as a table for docs/internals/claims.md: one row for each check.

        costs: of those whose price is known.
        """
        today = datetime.now(UTC).date().isoformat()
        dollars = {name: f"${cost:.4f}" for name, cost in costs.items()}
        rows = (
            f"| `{name}` | {self.checks[name].shows} | {result} | {today} | {region} | "
            f"{dollars.get(name, 'unknown')} |"
            for name, result in self.made.items()
        )
        return "\n".join(("", HEAD, "|---|---|---|---|---|---|", *rows, ""))

    def summary(self) -> str:
        """What came of all."""
        left = "".join(f"\n  {name}: {why}" for name, why in sorted(self.skipped.items()))
        skipped = f"\n{len(self.skipped)} were skipped:{left}" if left else ""
        if not self.failed:
            return f"All {self.passed} checks passed.{skipped}"
        names = "".join(f"\n  {title}" for title in self.failed)
        return (
            f"{len(self.failed)} of {self.passed + len(self.failed)} checks failed:{names}{skipped}"
        )
