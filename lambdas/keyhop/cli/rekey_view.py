"""How `keyhop rekey` tells what it has found: lines for a person, records for a program."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from keyhop.dynamodb.values import to_json
from keyhop.jobs.formats import json_text
from keyhop.rekey.control import other_side
from keyhop.rekey.pace import BACKFILL, THROTTLE
from keyhop.rekey.side.figures import DEPLOYMENT, VERIFIED
from keyhop.rekey.standing import Standing
from keyhop.wording import counted, duration

MOST_SHOWN = 10


def standing_json(one: Standing, show_keys: bool = False) -> dict[str, Any]:
    """The status, for programs. show_keys: with those of some items."""
    named = {"collide": _collide(one), "bypassed": _bypassed(one), "without_place": _unmapped(one)}
    named = named if show_keys else {}
    return {
        **named,
        "source": one.pair.source,
        "destination": one.pair.destination,
        "phase": one.phase,
        "serving": one.control.serving,
        "stage": one.control.stage,
        "direction": one.control.direction,
        "revision": one.control.revision,
        "shadow": one.control.shadow,
        "lag_seconds": one.lag,
        "claims": len(one.claims),
        "refused_claims": len(one.refused),
        "unmappable": one.unmappable,
        "failures": one.failed,
        "clients": len(one.alive),
        "unguarded_clients": len(one.unguarded),
        "shadowed": one.shadowed,
        "expected_clients": one.control.expected_clients,
        "stragglers": len(one.stragglers),
        "unsettled_stragglers": len(one.unsettled),
        "open_batches": len(one.open_batches),
        "figures": dict(one.figures),
        "troubles": one.troubles,
        "next": one.todo,
    }


def standing_lines(one: Standing, show_keys: bool = False) -> Iterator[str]:
    """The status, for a person."""
    control = one.control
    serves, follows = (one.pair.table(s) for s in (control.serving, other_side(control.serving)))
    yield f"{one.pair.source} -> {one.pair.destination}: {one.phase}"
    yield f"  means        {one.means}"
    yield f"  serves       {serves}"
    behind = "" if one.lag is None else f", {_seconds(one.lag)} behind"
    is_followed = control.direction is not None and bool(one.figure(DEPLOYMENT))
    yield f"  followed by  {follows if is_followed else 'nobody'}{behind}"
    if told := _copied(one):
        yield f"  copy         {told}"
    yield f"  verified     {_verified(one)}"
    refused = f", {len(one.refused):,} refused by DynamoDB" if one.refused else ""
    yield f"  claims       {len(one.claims):,}{refused}"
    if show_keys:
        for each in _collide(one):
            why = f": {each['refusal']}" if "refusal" in each else ""
            yield f"               {json_text(each['owner'])} wants {json_text(each['place'])}{why}"
    yield f"  unmappable   {one.unmappable:,}{_reasons(one)}"
    if show_keys:
        for each in _unmapped(one):
            yield f"               {json_text(each['key'])}: {each['why']}"
    yield f"  failures     {one.failed:,}"
    if control.shadow or any(one.shadowed.values()):
        told = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in one.shadowed.items())
        yield f"  shadow       {control.shadow * 100:g} % of reads: {told}"
    expected = f" of {control.expected_clients:,} expected" if control.expected_clients else ""
    if deployment := one.figure(DEPLOYMENT):
        yield f"  stack        {deployment['stack']}"
    unguarded = f", {len(one.unguarded):,} without a guard" if one.unguarded else ""
    yield f"  clients      {len(one.alive):,}{expected}{unguarded}"
    unsettled = f", {len(one.unsettled):,} unsettled" if one.unsettled else ""
    yield f"  stragglers   {len(one.stragglers):,}{unsettled}"
    if show_keys:
        for each in _bypassed(one):
            yield f"               {json_text(each['key'])} at {_moment(each['at'])} UTC"
    for trouble in one.troubles:
        yield f"  trouble      {trouble}"
    yield f"  next         {one.todo}"


def _collide(one: Standing) -> list[dict[str, Any]]:
    return [
        {
            "owner": to_json(each.owner),
            "place": to_json(each.place),
            **({"refusal": each.refusal} if each.refusal else {}),
        }
        for each in [*one.refused, *(each for each in one.claims if not each.refusal)][:MOST_SHOWN]
    ]


def _unmapped(one: Standing) -> list[dict[str, Any]]:
    some = one.unmapped[:MOST_SHOWN]
    return [{"key": to_json(each.key), "why": each.reason} for each in some]


def _bypassed(one: Standing) -> list[dict[str, Any]]:
    some = one.unsettled[:MOST_SHOWN]
    return [{"key": to_json(each.key), "at": each.at, "side": each.side} for each in some]


def _moment(at: float) -> str:
    return datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def _verified(one: Standing) -> str:
    last = one.figure(VERIFIED)
    if not last:
        return "never"
    at = _moment(last.get("at", 0))
    if not last.get("finished", True):
        return f"begun {at} UTC, not finished"
    told = ", ".join(f"{name} {last.get(name, 0):,}" for name in ("missing", "surplus", "changed"))
    share = last.get("share", 1)
    part = "" if share >= 1 else f" of {share * 100:g} %"
    if last.get("contended"):
        told += f", contended {last['contended']:,}"
    if last.get("unsettled"):
        told += f", unsettled {last['unsettled']:,}"
    repaired = f", repaired {last['repaired']:,}" if last.get("repaired") else ""
    return f"{at} UTC, {counted(last.get('items', 0), 'item')}{part}: {told}{repaired}"


def _copied(one: Standing) -> str:
    copy = one.figure(BACKFILL)
    if not copy:
        return ""
    pace = one.figure(THROTTLE)
    if copy.get("ended") is None:
        rate = f", under {pace['rate']:g} WRU a second" if pace.get("rate") else ""
        return f"run {copy['run']}{', paused' if pace.get('paused') else rate}"
    counts = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in copy["counts"].items())
    return f"finished: {counts}"


def _reasons(one: Standing) -> str:
    whys = list(dict.fromkeys(each.reason for each in one.unmapped))
    return f" ({'; '.join(whys[:3])})" if whys else ""
