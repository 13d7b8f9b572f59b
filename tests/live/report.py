"""What the checks found: each is one line, and a failed one does not end the suite."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError
from keyhop.errors import KeyhopError


class Refused(Exception):
    """The suite does not begin, or cannot go on; the message is for the user."""


class Differs(Exception):
    """Something is not as Keyhop relies on; the message tells what was seen."""


def expect(condition: object, told: str) -> None:
    """Raises Differs, which tells what was seen, unless `condition` holds."""
    if not condition:
        raise Differs(told)


def expect_equal(seen: object, wanted: object, what: str) -> None:
    """Raises Differs unless both are the same."""
    expect(seen == wanted, f"{what}: {_short(seen)}, but {_short(wanted)} was expected")


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
            print(f"  ok      {title} ({seconds:.1f} s){f': {note}' if note else ''}", flush=True)

    def _fail(self, title: str, why: str) -> None:
        self.failed.append(title)
        print(f"  FAILED  {title}\n          {why}", flush=True)

    def summary(self) -> str:
        """One line for all."""
        if not self.failed:
            return f"All {self.passed} checks passed."
        names = "".join(f"\n  {title}" for title in self.failed)
        return f"{len(self.failed)} of {self.passed + len(self.failed)} checks failed:{names}"
