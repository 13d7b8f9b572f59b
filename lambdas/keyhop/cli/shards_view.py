"""What `keyhop shards` prints: keys, phases in words, the history as a chart. Pure.

Keys and names of tables come from others: control characters in them are escaped, and rich's markup
is never applied to them.
"""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from keyhop.cli.progress import duration
from keyhop.dynamodb.values import TypedValue
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.manage import KeyShards

MOST_BAR = 40
BAR, ASCII_BAR = "\u2587", "#"


def shown(value: TypedValue) -> str:
    """A key for a person: binary as base64, and nothing that a terminal would obey."""
    ((_, content),) = value.items()
    if not isinstance(content, str):
        return base64.b64encode(bytes(content)).decode()
    return escaped(content)


def escaped(text: str) -> str:
    """Text of others, without control characters, nor any that change the direction of text."""
    return "".join(c if c.isprintable() else _escape(c) for c in text.replace("\\", "\\\\"))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def moment(epoch: float) -> str:
    """An epoch second, in UTC."""
    try:
        return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # somebody else has written the item
        return f"epoch {epoch:.0f}"


def lasting(seconds: float) -> str:
    """A time span; long ones in days."""
    return f"{seconds / 86_400:,.0f} days" if seconds >= 2 * 86_400 else duration(seconds)


def shards_word(count: int) -> str:
    """One shard, two shards."""
    return f"{count:,} shard{'' if count == 1 else 's'}"


def _range(first: int, last: int) -> str:
    return f"shard {first}" if first == last else f"shards {first} to {last}"


def phase_text(shards: Shards) -> str:
    """What the phase means, for this key."""
    new = _range(1, shards.writable)
    read = _range(1, shards.readable)
    last = _range(min(shards.writable + 1, shards.readable), shards.readable)
    more = _range(min(shards.writable + 1, shards.number), shards.number)
    return {
        Phase.STEADY: f"nothing is being changed: new items go to {new}",
        Phase.ANNOUNCED: f"readers read {read} already; writers will use {more} when all readers "
        "know",
        Phase.OPENED: f"writers use {new} from now on; the growth ends with the next write",
        Phase.CLOSING: f"a drain to {shards_word(shards.number)} was begun: all writers are told; "
        "nothing is moved yet",
        Phase.FENCED: f"new items go to {new} only; when all writers know, those in {last} are "
        "moved",
        Phase.MOVING: f"items are being moved from {last} to {new}",
        Phase.MOVED: f"{last} {'is' if shards.readable == shards.writable + 1 else 'are'}"
        " empty; readers read on until all writers know",
        Phase.HALTED: f"a drain was called off: movers are told to stop; items stay where they are "
        f"in {read}",
        Phase.REOPENING: f"a drain was called off: writers will use {read} again when all know",
    }[shards.phase]


def history_chart(shards: Shards, now: float, bar: str = BAR) -> list[str]:
    """The shard counts over time: time runs down, a bar for each count, how long it lasted."""
    steps = shards.history or ((shards.last_updated, shards.number),)
    most = max(count for _, count in steps)
    scale = min(1.0, MOST_BAR / most)
    width = len(f"{most:,}")
    ends = [*(at for at, _ in steps[1:]), None]
    lines, day = [], ""
    for (at, count), end in zip(steps, ends, strict=True):
        date, _, time = moment(at).partition(" ")
        start = f"{'' if date == day else date:10} {time:8}"
        day = date
        lasted = max(0.0, (now if end is None else end) - at)
        for_ = f"for {lasting(lasted)}{' until now' if end is None else ''}"
        bars = bar * max(1, round(count * scale))
        lines.append(f"{start}  {count:>{width},} {bars:<{round(most * scale)}}  {for_}")
    return lines


def show_text(one: KeyShards, key: TypedValue, now: float, bar: str = BAR) -> str:
    """All that the metadata says of a key, for a person."""
    shards = one.shards
    lines = [
        f"{shown(key)}: {shards_word(shards.number)}",
        f"  writable   {_range(1, shards.writable)}: where new items go",
        f"  readable   {_range(1, shards.readable)}: where readers look; others hold nothing",
        f"  phase      {shards.phase}: {phase_text(shards)}",
        f"  changed    {moment(shards.last_updated)} UTC, "
        f"{lasting(max(0.0, now - shards.last_updated))} ago",
        f"  settles    {shards.settle:g} s for each step of a change",
        f"  placement  {escaped(shards.placement) if shards.placement else 'not agreed upon yet'}",
        f"  traffic    {_traffic_text(one.traffic)}",
    ]
    if one.would_do is not None:
        lines.append(f"  would do   {shards_word(one.would_do)}: {one.reason}")
    lines += ["", "  shards over time (UTC; the 20 latest changes are kept)"]
    lines += [f"    {line}" for line in history_chart(shards, now, bar)]
    return "\n".join(line.rstrip() for line in lines)


def _traffic_text(traffic: Mapping[int, float]) -> str:
    if not traffic:
        return "none was reported; writers report keys of several shards, once a minute"
    hour, units = max(traffic.items(), key=lambda entry: entry[1])
    return (
        f"the busiest hour, from {moment(hour * 3600)[:16]} UTC, had {units / 3600:,.1f} write "
        f"units a second"
    )


def keys_table(rows: Sequence[tuple[TypedValue, KeyShards]], now: float) -> Table:
    """The keys of a table; all cells are Text, so that no key is taken for markup."""
    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True, overflow="ellipsis")
    table.add_column("shards", justify="right")
    table.add_column("phase")
    table.add_column("last change (UTC)", no_wrap=True)
    table.add_column("would do", justify="right")
    for key, one in rows:
        changed = moment(one.shards.last_updated)
        ago = lasting(max(0.0, now - one.shards.last_updated))
        cells = (
            shown(key),
            f"{one.shards.number:,}",
            one.shards.phase.value,
            f"{changed}, {ago} ago",
            "" if one.would_do is None else f"{one.would_do:,}",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def key_json(key: TypedValue, one: KeyShards) -> dict[str, Any]:
    """What the metadata says of a key, for programs; binary as base64."""
    shards = one.shards
    ((type_, content),) = key.items()
    text = content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()
    return {
        "key": {type_: text},
        "shards": shards.number,
        "writable": shards.writable,
        "readable": shards.readable,
        "phase": shards.phase.value,
        "last_updated": shards.last_updated,
        "history": [{"at": at, "shards": count} for at, count in shards.history],
        "settle_seconds": shards.settle,
        "placement": shards.placement,
        "traffic": {str(hour): units for hour, units in sorted(one.traffic.items())},
        "would_do": one.would_do,
        "reason": one.reason,
    }
