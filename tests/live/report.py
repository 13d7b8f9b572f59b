"""What the checks found: each is one line, and a failed one does not end the suite."""

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from keyhop.errors import KeyhopError


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


@dataclass
class Report:
    """Prints each check as it ends; remembers those that failed."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)

    def check(self, title: str, look: Callable[[], str | None]) -> None:
        """Run one check; what `look` returns is told beside it."""
        began = time.monotonic()
        try:
            note = look()
        except (Differs, BotoCoreError, ClientError, KeyhopError) as error:
            self._fail(title, f"{type(error).__name__}: {error}")
        except Exception as error:  # one broken check must not hide what the others would find
            traceback.print_exc()
            self._fail(title, f"{type(error).__name__}: {error}")
        else:
            self.passed += 1
            seconds = time.monotonic() - began
            say(f"  ok      {title} ({seconds:.1f} s){f': {note}' if note else ''}")

    def _fail(self, title: str, why: str) -> None:
        self.failed.append(title)
        say(f"  FAILED  {title}\n          {why}")

    def summary(self) -> str:
        """One line for all."""
        if not self.failed:
            return f"All {self.passed} checks passed."
        names = "".join(f"\n  {title}" for title in self.failed)
        return f"{len(self.failed)} of {self.passed + len(self.failed)} checks failed:{names}"
