"""The result of a batch of stream records. Pure."""

from dataclasses import dataclass, field

from keyhop.rekey.control import Share


@dataclass(slots=True)
class Worked:
    """The result of a batch; `lag` is the age of its newest record at its end, in seconds. `left`
    are works that became claims, `stragglers` writes that bypassed the router, `unmapped` keys
    whose item cannot be mapped, and `given_up` keys that killed the worker repeatedly.
    """

    records: int = 0
    keys: int = 0
    lag: float = 0.0
    swept: int = 0
    left: int = 0
    stragglers: int = 0
    unmapped: int = 0
    given_up: int = 0
    share: Share = "work"
    failures: list[Exception] = field(default_factory=list)

    def add(self, part: "Worked") -> None:
        """Add the result of a part of the batch."""
        for name in ("records", "keys", "swept", "left", "unmapped"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.lag = max(self.lag, part.lag)
        self.failures += part.failures
