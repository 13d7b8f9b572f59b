"""The present moment, as records write it."""

from datetime import UTC, datetime


def now() -> str:
    """This moment, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
