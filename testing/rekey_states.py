"""A re-key in each state of its protocol, including the states after a kill."""

from dataclasses import replace
from typing import Any

from keyhop.rekey.control import Control, Direction
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import Claim, Straggler, Unmapped
from keyhop.rekey.side.table import SideTable, _straggler_key
from keyhop.rekey.standing import RekeyStatus

DAY = 86_400.0
KEY, OTHER = {"customer": {"S": "c1"}, "order": {"S": "7"}}, {"day": {"S": "2026-11-22"}}
NOBODY: dict[Direction, str] = {"forward": "no deployment", "reverse": "no deployment"}
FOLLOWED: dict[Direction, str] = {"forward": "", "reverse": ""}


def states(pair: Pair, now: float, identity: str = "i") -> dict[str, RekeyStatus]:
    """Return the states by name; those whose name begins with `local` have no deployment.

    identity: the identity of the destination.
    """
    copied = {"copied": [], "destination": {"identity": identity, "adopted": False}}
    stack = {**copied, "deployment": {"stack": "Keyhop"}, "started": {"at": now - 5_000}}
    running = {"run": "copy-1", "started": "s", "began": now - 4_000, "ended": None}
    verifying = {**running, "run": "verify-1", "began": now - 1_900}
    signs = {name: {"run": f"{name}-1", "at": now - 20} for name in ("copy", "verify")}
    alive_copy = {"backfill": running, "alive.backfill": signs["copy"]}
    alive_verify = {"verifying": verifying, "alive.verifying": signs["verify"]}
    ended = {**running, "ended": now - 2_000, "counts": {"copied": 720}}
    clean = {"at": now - 600, "began": now - 900, "items": 720, "finished": True, "share": 1.0}
    clean |= {"missing": 0, "surplus": 0, "changed": 0, "left": 0, "turns": 0}
    lag = {"seconds": 0.4, "at": now - 5}
    equal = {**stack, "backfill": ended, "verify": clean, "lag.forward": lag}
    turned = {**equal, "turned": {"at": now - 3_600, "serving": "destination"}, "lag.reverse": lag}
    week = {**turned, "turned": {"at": now - 8 * DAY, "serving": "destination"}}
    works = Control(replicating=True)
    cut_over = Control("destination", replicating=True, turns=1)
    rolled_back = Control(replicating=True, turns=2)
    closing = works.closed()
    frozen = closing.froze()
    fenced = frozen.fenced()

    cut_over_frozen = cut_over.closed().froze()
    claim = Claim("forward", OTHER, KEY, now - 300, "t")
    alive = {"checkout": {"revision": 0, "until": now + 600, "guarded": True}}
    late = Straggler("source", KEY, (OTHER,), now - 60)

    cancelling = {"how": "cancel", "delete": "", "export": ""}
    completing = {"how": "complete", "delete": pair.source, "export": ""}

    def state(control: Control, figures: dict[str, Any], **more: Any) -> RekeyStatus:
        has_stack = "deployment" in figures
        more = {"mapped": FOLLOWED if has_stack else NOBODY, "clients": alive, **more}
        return RekeyStatus(pair, control, now, figures=figures, **more)

    def changed(name: str, figure: Any, figures: dict[str, Any] = equal) -> dict[str, Any]:
        return {**figures, name: figure}

    return {
        "create was killed": state(Control(), {}),
        "create was killed, an adopted table": state(
            Control(), {"destination": {"identity": identity, "adopted": True}}
        ),
        "created": state(Control(), copied),
        "start was killed before the streams were followed": state(
            Control(), stack, mapped={**FOLLOWED, "reverse": "nobody follows the stream"}
        ),
        "created, and paused": state(
            Control(), {**copied, "throttle": {"rate": None, "paused": True}}
        ),
        "local: started, killed before the copy": state(works, copied),
        "local: copying": state(works, {**copied, **alive_copy}),
        "local: killed in the copy": state(works, {**copied, "backfill": running}),
        "local: copied": state(works, {**copied, "backfill": ended}),
        "local: verifying": state(works, {**copied, "backfill": ended, **alive_verify}),
        "local: killed in the first verify": state(
            works, {**copied, "backfill": ended, "verifying": verifying}
        ),
        "local: killed in a repair": state(
            works, {**copied, "backfill": ended, "verifying": verifying}, claims=[claim]
        ),
        "local: verified, an item cannot be mapped": state(
            works,
            {**copied, "backfill": ended, "verify": clean},
            unmapped=[Unmapped("d", "attribute 'day' is missing", now, KEY)],
        ),
        "local: verified, foreign items remain": state(
            works,
            {
                **copied,
                "backfill": ended,
                "verify": {**clean, "surplus": 2, "foreign": 2, "left": 2},
            },
        ),
        "local: verified": state(works, {**copied, "backfill": ended, "verify": clean}),
        "started, killed before the copy": state(works, stack),
        "copying": state(works, {**stack, **alive_copy, "lag.forward": lag}),
        "killed in the copy": state(works, {**stack, "backfill": running, "lag.forward": lag}),
        "copying, nobody follows": state(
            works,
            {**stack, **alive_copy},
            mapped={**FOLLOWED, "forward": "nobody follows the stream"},
        ),
        "paused by hand": state(
            works, {**stack, "backfill": running, "throttle": {"rate": 500.0, "paused": True}}
        ),
        "throttled": state(
            works, {**stack, **alive_copy, "throttle": {"rate": 500.0, "paused": False}}
        ),
        "slowed by the lag": state(
            works, {**stack, **alive_copy, "lag.forward": {"seconds": 60.0, "at": now - 5}}
        ),
        "waiting for the lag": state(
            works, {**stack, **alive_copy, "lag.forward": {"seconds": 300.0, "at": now - 5}}
        ),
        "copying, dead letters": state(works, {**stack, **alive_copy}, failed=3),
        "copied": state(works, {**stack, "backfill": ended, "lag.forward": lag}),
        "copied, far behind": state(
            works, {**stack, "backfill": ended, "lag.forward": {"seconds": 300.0, "at": now - 5}}
        ),
        "verifying": state(works, {**stack, "backfill": ended, **alive_verify}),
        "verify was killed": state(works, {**stack, "backfill": ended, "verifying": verifying}),
        "verified, verifying again": state(works, {**equal, **alive_verify}),
        "a sample was verified": state(works, changed("verify", {**clean, "share": 0.1})),
        "verified, differences": state(
            works, changed("verify", {**clean, "missing": 4, "left": 4})
        ),
        "verified too long ago": state(
            works,
            changed("verify", {**clean, "at": now - 2 * DAY, "began": now - 2 * DAY})
            | {"backfill": {**ended, "ended": now - 3 * DAY}},
        ),
        "copied again after verify": state(
            works, changed("verify", {**clean, "began": now - 2_500})
        ),
        "verified": state(works, equal),
        "verified, no lag reported": state(
            works, changed("lag.forward", {**lag, "at": now - 3_600})
        ),
        "verified, behind": state(works, changed("lag.forward", {"seconds": 5.0, "at": now - 5})),
        "verified, dead letters": state(works, equal, failed=3),
        "verified, the queue is not readable": state(works, equal, failed=None),
        "verified, nobody follows": state(
            works, equal, mapped={**FOLLOWED, "forward": "nobody follows the stream"}
        ),
        "verified, a batch fails": state(
            works, equal, mapped={**FOLLOWED, "forward": "the last batch had a problem"}
        ),
        "verified, items collide": state(works, equal, claims=[claim]),
        "verified, an item is refused": state(
            works, equal, claims=[replace(claim, refusal="Type mismatch for Index Key")]
        ),
        "verified, an item cannot be mapped": state(
            works, equal, unmapped=[Unmapped("d", "attribute 'day' is missing", now, KEY)]
        ),
        "verified, some could not be mapped then": state(
            works, changed("verify", {**clean, "unmappable": 2})
        ),
        "verified, an expected router is missing": state(replace(works, expected_clients=2), equal),
        "verified, no router": state(works, equal, clients={}),
        "verified, a router without a guard": state(
            works, equal, clients={"checkout": {**alive["checkout"], "guarded": False}}
        ),
        "shadowing": state(replace(works, shadow=0.1), equal),
        "the shadow differs": state(
            replace(works, shadow=0.1),
            equal,
            clients={"checkout": {**alive["checkout"], "shadow_real": 2}},
        ),
        "cutover, killed in closing": state(closing, equal),
        "cutover, killed in frozen": state(frozen, equal),
        "cutover, killed in fenced": state(fenced, equal),
        "cutover, killed in turned": state(fenced.turned(), turned),
        "cut over": state(cut_over, turned),
        "cut over, the turn was not recorded": state(cut_over, equal),
        "cut over again, the turn was not recorded": state(
            replace(cut_over, turns=3),
            {**week, "turned": {"at": now - 9 * DAY, "serving": "source"}},
        ),
        "cut over, behind": state(
            cut_over, changed("lag.reverse", {"seconds": 90.0, "at": now}, turned)
        ),
        "cut over, a straggler": state(cut_over, turned, stragglers=[late]),
        "cut over, an item cannot go back": state(
            cut_over,
            turned,
            unmapped=[Unmapped("d", "attribute 'customer' is missing", now, OTHER)],
        ),
        "cut over, dead letters": state(cut_over, turned, failed=3),
        "cut over, nobody follows": state(
            cut_over, turned, mapped={**FOLLOWED, "reverse": "nobody follows the stream"}
        ),
        "cut over a week ago, routers alive": state(cut_over, week),
        "cut over a week ago": state(cut_over, week, clients={}),
        "rollback, killed in closing": state(cut_over.closed(), turned),
        "rollback, killed in frozen": state(cut_over_frozen, turned),
        "rollback, killed in fenced": state(cut_over_frozen.fenced(), turned),
        "rollback, killed in turned": state(cut_over_frozen.fenced().turned(), turned),
        "rolled back": state(
            rolled_back, {**turned, "turned": {"at": now - 60, "serving": "source"}}
        ),
        "rolled back, a straggler": state(
            rolled_back,
            {**turned, "turned": {"at": now - 60, "serving": "source"}},
            stragglers=[Straggler("destination", OTHER, (KEY,), now - 30)],
        ),
        "complete was killed": state(
            replace(cut_over, replicating=False),
            {**week, "end": completing, "ending": {"how": "complete", "at": now}},
            clients={},
        ),
        "complete was killed at once": state(
            replace(cut_over, replicating=False), {**week, "end": completing}, clients={}
        ),
        "complete with a short window was killed at once": state(
            replace(cut_over, replicating=False), {**turned, "end": completing}, clients={}
        ),
        "cancel was killed": state(
            Control(), {**equal, "end": cancelling, "ending": {"how": "cancel", "at": now}}
        ),
        "cancel was killed at once": state(Control(), {**equal, "end": cancelling}),
    }


def write(side: SideTable, state: RekeyStatus) -> None:
    """Bring a side table, which has a plan, into this state."""
    control = side.control()
    assert side.swap(control, replace(state.control, revision=control.revision + 1))
    for name in side.all_told().keys() | state.figures.keys():
        side.tell(name, state.figures.get(name))
    for client in side.clients().keys() | state.clients.keys():
        expired = {"revision": 0, "until": 0.0}
        side.report_client(client, state.clients.get(client, expired))
    for row in side.stragglers():  # a settled straggler still counts for 24 hours
        side.delete_if(_straggler_key(row.side, row.key), {})
    for straggler in state.stragglers:
        side.straggler(straggler.side, straggler.key, straggler.places)
    direction: Direction = "forward" if state.control.serving == "source" else "reverse"
    for each in ("forward", "reverse"):
        for stale in side.claims(each):  # type: ignore[arg-type]
            side.drop_claim(stale)
        for item in side.all_unmapped(each):  # type: ignore[arg-type]
            side.mapped(each, item.key)  # type: ignore[arg-type]
    for claim in state.claims:
        side.claim(direction, claim.place, claim.owner, refusal=claim.refusal)
    for item in state.unmapped:
        side.unmapped(direction, item.key, item.reason)
