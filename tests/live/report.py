"""The results of the checks: each prints one line, and a failed check does not end the suite."""

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
    """The suite cannot start or continue; the message is for the user."""


class Differs(Exception):
    """The service behaves differently from what Keyhop relies on; the message has the facts."""


def say(text: str) -> None:
    """Print a text. A closed terminal must not end the clean-up."""
    with suppress(OSError):
        print(text, flush=True)


def expect(condition: object, message: str) -> None:
    """Raise Differs with a message unless `condition` is true."""
    if not condition:
        raise Differs(message)


def expect_equal(actual: object, expected: object, label: str) -> None:
    """Raise Differs unless both values are equal."""
    expect(actual == expected, f"{label}: {_short(actual)}, but {_short(expected)} was expected")


def expect_keys(actual: Iterable[Any], expected: set[Any]) -> None:
    """Raise Differs unless `actual` has each of the `expected` keys exactly once."""
    counts = Counter(actual)
    faults = {
        "missing": expected - set(counts),
        "surplus": set(counts) - expected,
        "more than once": {key for key, times in counts.items() if times > 1},
    }
    message = "; ".join(
        f"{len(keys)} {fault}: {_short(keys)}" for fault, keys in faults.items() if keys
    )
    expect(not message, f"of {len(expected)} keys, {message}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def until(poll: Callable[[], str | None], label: str, seconds: float, pause: float = 10.0) -> str:
    """Return the first result of `poll` that is not None; raise Differs after `seconds`."""
    deadline = time.monotonic() + seconds
    while (result := poll()) is None:
        expect(time.monotonic() < deadline, f"{label} did not come in {seconds:g} seconds")
        time.sleep(pause)
    return result


NOT_ASKED_FOR = "not among ONLY"
NOT_FINISHED = "not finished"
HEAD = "| check | claim | result | date | region | cost at most |"


@dataclass
class Report:
    """A report that prints each check as it ends, and records failed and skipped checks.

    Attributes:
        lacks: What the service cannot do, with the reason. Checks that need it are skipped.
        only: The names of the requested checks; empty for all.
        made: How each check ended, by name. A check of several tables has the worst result.
    """

    lacks: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=lambda: CHECKS)
    only: Collection[str] = ()
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)

    def check(self, name: str, perform: Callable[[], str | None], target: str = "") -> None:
        """Make one check of a `target`, and print what `perform` returns beside the result."""
        check = self.checks[name]
        if self.only and name not in self.only:
            return
        if check.needs in self.lacks:
            self.skip(name, self.lacks[check.needs])
            return
        title = f"{name}{f' [{target}]' if target else ''}: {check.shows}"
        began = time.monotonic()
        before = self.made.get(name)
        self.made[name] = NOT_FINISHED  # remains after an interruption
        try:
            note = perform()
        except (Differs, BotoCoreError, ClientError, KeyhopError) as error:
            self._fail(name, title, f"{type(error).__name__}: {error}")
        except Exception as error:  # one broken check must not prevent the others
            traceback.print_exc()
            self._fail(name, title, f"{type(error).__name__}: {error}")
        else:
            self.made[name] = before or "holds"
            self.passed += 1
            seconds = time.monotonic() - began
            say(f"  ok      {title} ({seconds:.1f} s){f': {note}' if note else ''}")

    def skip(self, name: str, reason: str) -> None:
        if name not in self.skipped:
            self.skipped[name] = reason
            say(f"  skipped {name}: {self.checks[name].shows}\n          {reason}")

    def skip_the_rest(self, reason: str) -> None:
        """Skip all checks that were neither made nor skipped."""
        for name in sorted(self.checks.keys() - self.made.keys() - self.skipped.keys()):
            self.skip(name, NOT_ASKED_FOR if self.only and name not in self.only else reason)

    def _fail(self, name: str, title: str, message: str) -> None:
        self.made[name] = "**fails**"
        self.failed.append(title)
        say(f"  FAILED  {title}\n          {message}")

    def table(self, region: str, costs: Mapping[str, float]) -> str:
        """Return the results as a table for docs/internals/claims.md, with one row for each check.

        `costs` has the dollars of each check whose price is known.
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
        """Return the numbers of passed, failed and skipped checks, with the names."""
        reasons = "".join(f"\n  {name}: {why}" for name, why in sorted(self.skipped.items()))
        skipped = f"\n{len(self.skipped)} were skipped:{reasons}" if reasons else ""
        if not self.failed:
            return f"All {self.passed} checks passed.{skipped}"
        names = "".join(f"\n  {title}" for title in self.failed)
        return (
            f"{len(self.failed)} of {self.passed + len(self.failed)} checks failed:{names}{skipped}"
        )
