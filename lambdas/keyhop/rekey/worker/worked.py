"""What a batch of stream records came to. Pure."""

from dataclasses import dataclass, field

from keyhop.rekey.control import Share


@dataclass(slots=True)
class Worked:
    """What a batch came to. keys: source keys that were worked. lag: age of its newest record when
    it was done, in seconds. left: works that are claims now. stragglers: writes that bypassed the
    router. unmapped: keys whose item has no form in the other table. given_up: keys of which the
    worker has died again and again.
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

    def add(self, other: "Worked") -> None:
        """What a part of the batch came to."""
        for name in ("records", "keys", "swept", "left", "unmapped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lag = max(self.lag, other.lag)
        self.failures += other.failures
