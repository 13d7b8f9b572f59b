"""Texts about keys and their shards, for a person. Pure.

Keys come from others: control characters in them are escaped.
"""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime

from keyhop.sharding.key.shards import Phase, Shards
from keyhop.wording import counted, duration

MOST_BAR = 40
BAR = "\u2587"


def shown(key: str | bytes) -> str:
    """Return a key for a person: binary as base64, without control characters."""
    return escaped(key_text(key))


def key_text(key: str | bytes) -> str:
    """Return the text of a key for programs: binary as base64."""
    return key if isinstance(key, str) else base64.b64encode(key).decode()


def typed_json(key: str | bytes) -> dict[str, str]:
    """Return a key in DynamoDB's JSON: {"S": "/f.txt"}."""
    return {"S" if isinstance(key, str) else "B": key_text(key)}


def escaped(text: str) -> str:
    """Escape control characters, and those that change the direction of text."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in text.replace("\\", "\\\\")
    )


def shards_text(count: int) -> str:
    """Return a number of shards, such as "2 shards"."""
    return counted(count, "shard")


def moment(epoch: float) -> str:
    """Return a time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # somebody else has written the item
        return f"epoch {epoch:.0f}"


def ago(epoch: float, now: float) -> str:
    """Return how long ago a time was."""
    return f"{duration(max(0.0, now - epoch))} ago"


def shard_range(first: int, last: int) -> str:
    """Return a range of shards, such as "shards 1 to 4"."""
    return f"shard {first}" if first == last else f"shards {first} to {last}"


def phase_text(shards: Shards) -> str:
    """Explain the phase of this key."""
    new = shard_range(1, shards.writable)
    read = shard_range(1, shards.readable)
    last = shard_range(min(shards.writable + 1, shards.readable), shards.readable)
    more = shard_range(min(shards.writable + 1, shards.number), shards.number)
    return {
        Phase.STEADY: f"nothing is being changed: new items go to {new}",
        Phase.ANNOUNCED: f"readers read {read} already; writers will use {more} when all know",
        Phase.OPENED: f"writers use {new} from now on; the growth ends with the next write",
        Phase.CLOSING: f"a drain to {shards_text(shards.number)} has started: it waits until all "
        "writers know; nothing has been moved yet",
        Phase.FENCED: f"new items go to {new} only; when all writers know, those in {last} are "
        "moved",
        Phase.MOVING: f"items are being moved from {last} to {new}",
        Phase.MOVED: f"{last} {'is' if shards.readable == shards.writable + 1 else 'are'}"
        " empty; readers read on until all writers know",
        Phase.HALTED: f"a drain was called off: movers stop; items stay where they are in {read}",
        Phase.REOPENING: f"a drain was called off: writers will use {read} again when all know",
    }[shards.phase]


def history_chart(shards: Shards, now: float, bar: str = BAR) -> list[str]:
    """Draw the shard counts over time, a line each, with its bar and its duration."""
    steps = shards.history or ((shards.last_updated, shards.number),)
    maximum = max(count for _, count in steps)
    scale = min(1.0, MOST_BAR / maximum)
    width = len(f"{maximum:,}")
    ends = [*(at for at, _ in steps[1:]), None]
    lines, day = [], ""
    for (at, count), end in zip(steps, ends, strict=True):
        date, _, time = moment(at).partition(" ")
        start = f"{'' if date == day else date:10} {time:8}"
        day = date
        lasted = duration(max(0.0, (now if end is None else end) - at))
        bars = bar * max(1, round(count * scale))
        until = " until now" if end is None else ""
        lines.append(
            f"{start}  {count:>{width},} {bars:<{round(maximum * scale)}}  for {lasted}{until}"
        )
    return lines


def traffic_text(traffic: Mapping[int, float] | None) -> str:
    """Return the busiest minute that writers have reported."""
    if traffic is None:
        return "not readable: remove the attribute traffic of the key's item in the metadata table"
    if not traffic:
        return "unknown: no writer has reported any; writers report keys of several shards"
    minute, units = max(traffic.items(), key=lambda entry: entry[1])
    return (
        f"the busiest minute, {moment(minute * 60)[:16]} UTC, had {units / 60:,.1f} write units "
        "a second"
    )
