"""What `keyhop shards` prints: keys, phases in words, the history as a chart. Pure.

Keys and names of tables come from others: control characters in them are escaped, and rich's markup
is never applied to them.
"""

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from keyhop.dynamodb.units import BLOCK_BYTES, Prices
from keyhop.dynamodb.values import TypedValue
from keyhop.sharding.io.items import typed
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.manage import KeyShards, ShardLook
from keyhop.wording import counted, duration

MOST_BAR = 40
BAR, ASCII_BAR = "\u2587", "#"


def shown(value: TypedValue) -> str:
    """A key for a person: binary as base64, and nothing that a terminal would obey."""
    return escaped(_plain(value))


def _plain(value: TypedValue) -> str:
    (content,) = value.values()
    return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()


def escaped(text: str) -> str:
    """Text of others, without control characters, nor any that change the direction of text."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in text.replace("\\", "\\\\")
    )


def shards_word(count: int) -> str:
    """One shard, two shards."""
    return counted(count, "shard")


MOVE_UNITS = 4
"""Write units for each KB of an item that is moved: a put and a delete, in a transaction."""


def moves_facts(look: ShardLook, shards: int, prices: Prices) -> Iterator[tuple[str, str]]:
    """What a drain of `shards` shards like this one will move, for a person."""
    items = look.items * shards
    each = MOVE_UNITS * max(1, math.ceil(look.size / max(1, look.items) / 1024))
    units, more = items * each, "about" if look.whole else "more than"
    yield "moves", f"{more} {counted(items, 'item')}, out of {shards_word(shards)}"
    yield "writes", f"{more} {units:,} WRU, {each} for each item"
    yield "reads", f"{more} {look.size * shards / BLOCK_BYTES:,.0f} RRU"
    dollars = f"{more} ${prices.dollars(0.0, units):,.4f}"
    yield "cost", f"{dollars} ({prices.on_demand})"


def _moment(epoch: float) -> str:
    try:
        return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # somebody else has written the item
        return f"epoch {epoch:.0f}"


def _ago(epoch: float, now: float) -> str:
    return f"{duration(max(0.0, now - epoch))} ago"


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
        Phase.AWAITED: f"readers read {read} already; writers will use {more} when all know; new "
        "items that belong there wait until then",
        Phase.WIDENED: f"writers use {new} from now on; the growth ends with the next write",
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
        date, _, time = _moment(at).partition(" ")
        start = f"{'' if date == day else date:10} {time:8}"
        day = date
        lasted = duration(max(0.0, (now if end is None else end) - at))
        bars = bar * max(1, round(count * scale))
        until = " until now" if end is None else ""
        lines.append(
            f"{start}  {count:>{width},} {bars:<{round(most * scale)}}  for {lasted}{until}"
        )
    return lines


def show_text(one: KeyShards, now: float, bar: str = BAR) -> str:
    """All that the metadata says of a key, for a person."""
    shards = one.shards
    changed = f"{_moment(shards.last_updated)} UTC, {_ago(shards.last_updated, now)}"
    placement = escaped(shards.placement) if shards.placement else "not agreed upon yet"
    lines = [
        f"{shown(typed(one.key))}: {shards_word(shards.number)}",
        f"  writable   {_range(1, shards.writable)}: where new items go",
        f"  readable   {_range(1, shards.readable)}: where readers look; others hold nothing",
        f"  phase      {shards.phase}: {phase_text(shards)}",
        f"  changed    {changed}",
        f"  settles    {shards.settle:g} s for each step of a change",
        f"  placement  {placement}",
        f"  traffic    {_traffic_text(one.traffic)}",
    ]
    if one.would_do is not None:
        lines.append(f"  would do   {shards_word(one.would_do)}: {one.reason}")
    lines += ["", "  shards over time (UTC; the 20 latest changes are kept)"]
    lines += [f"    {line}" for line in history_chart(shards, now, bar)]
    return "\n".join(line.rstrip() for line in lines)


def _traffic_text(traffic: Mapping[int, float] | None) -> str:
    if traffic is None:
        return "not readable: remove the attribute traffic of the key's item in the metadata table"
    if not traffic:
        return "unknown: no writer has reported any; writers report keys of several shards"
    minute, units = max(traffic.items(), key=lambda entry: entry[1])
    return (
        f"the busiest minute, {_moment(minute * 60)[:16]} UTC, had {units / 60:,.1f} write units "
        "a second"
    )


def keys_table(keys: Sequence[KeyShards], now: float) -> Table:
    """The keys of a table; all cells are Text, so that no key is taken for markup."""
    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True, overflow="ellipsis")
    table.add_column("shards", justify="right")
    table.add_column("phase")
    table.add_column("last change (UTC)", no_wrap=True)
    table.add_column("would do", justify="right")
    for one in keys:
        shards = one.shards
        cells = (
            shown(typed(one.key)),
            f"{shards.number:,}",
            shards.phase.value,
            f"{_moment(shards.last_updated)}, {_ago(shards.last_updated, now)}",
            "" if one.would_do is None else f"{one.would_do:,}",
        )
        table.add_row(*map(Text, cells))
    return table


def key_json(one: KeyShards) -> dict[str, Any]:
    """What the metadata says of a key, for programs; binary as base64."""
    shards = one.shards
    key = typed(one.key)
    (type_,) = key
    return {
        "key": {type_: _plain(key)},
        "shards": shards.number,
        "writable": shards.writable,
        "readable": shards.readable,
        "phase": shards.phase.value,
        "last_updated": shards.last_updated,
        "history": [{"at": at, "shards": count} for at, count in shards.history],
        "settle_seconds": shards.settle,
        "placement": shards.placement,
        "traffic": None
        if one.traffic is None
        else {str(minute): units for minute, units in sorted(one.traffic.items())},
        "would_do": one.would_do,
        "reason": one.reason,
    }


def without_traffic(told: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a key in csv: its minutes would each be a column."""
    return {name: value for name, value in told.items() if name != "traffic"}
