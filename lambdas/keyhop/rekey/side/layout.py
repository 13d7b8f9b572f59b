"""The side table: control, plan, claims, started batches, markers, clients, stragglers.

It is a separate table beside the destination, with the partition key `pk` and the sort key `sk`
(both S), on demand; `complete` deletes it. So neither of the two tables holds data of Keyhop's.

    pk         sk                            holds
    control    control                       Control, as JSON; a change is a swap of its revision
    plan       plan                          Pair, as JSON
    claims#D   <place>|<owner>               remaining work: a source item, and a place of its
    claims#D   joint|<random>                the same of several items, which are repaired together
    begun#D    <shard>#<sequence number>     a batch that may be in flight
    unmapped#D <digest of the key>           an item that cannot be mapped to the other table
    marker     <random>                      a marker, and where it was seen
    client     <id>                          a router: the revision that it uses, and until when
    straggler  <side>|<key>                  a write that bypassed the routers
    told       <name>                        a figure, as JSON

D is the direction, forward or reverse. Keys are JSON texts of typed values; a name that is too long
for a sort key is replaced by its SHA-256. Content is JSON text in the attribute `body`, beside what
conditions use: `revision`, `tries` (how often a batch has started), `stamp` (a claim's token).

Figures have `at` and all other times in seconds since 1970:

    throttle     {"rate": write units a second of all workers, null as the run was started, or
                 "none" for no limit, "paused": true or false}
    backfill     {"run", "started", "began", "ended": null while it is running, "counts"}
    unmappable   {"count", "examples": [{"key": a digest, "why"}], "at", "run"}: the result of the
                 last backfill, or of the last verification of everything
    destination  {"identity": "" before creation, "adopted": whether it existed, and was empty,
                 "source": the source's identity}
    copied       the result for each feature (rows of likeness.py), once all settings are copied
    ttl          {"attribute": ...} by which items of the source expired; null if they did not
    stream       {"turned_on": true, "arn": "" before that}: only if `create` turned it on
    started      {"at"}
    deployment   {"stack"}: the one whose function follows the streams
    lag.D        {"seconds", "at"}; D is forward or reverse
    verifying    the verification that was begun last, as `backfill` without the counts
    alive.F      {"run", "at"}: the last sign of life of the run in figure F, backfill or verifying
    verify       run, at, finished, share (1: of everything), items, turns (Control.turns when it
                 began), the counts (compare/task.told_of), left: differences that were not repaired
    marker keys S  keys by the shards of the stream of S, source or destination
    turned       {"at", "serving"}: the last change of the serving table
    end          {"how": complete or cancel, "delete": the table to delete, or "", "export": the
                 bucket, or ""}: the last end that was begun. It is final from `ending` on, or when
                 nothing replicates
    ending       {"how", "at"}
    export       {"token": of the request, "arn": empty before it was answered}
"""

from dataclasses import dataclass

from keyhop.dynamodb.values import Key
from keyhop.rekey.control import Direction, Side

KEYS = ("pk", "sk")
CONTROL, PLAN, CLAIMS, BEGUN = "control", "plan", "claims", "begun"
UNMAPPED = "unmapped"
MARKER, CLIENT, STRAGGLER, TOLD = "marker", "client", "straggler", "told"
DESTINATION, COPIED, TTL, STREAM = "destination", "copied", "ttl", "stream"
STARTED, DEPLOYMENT = "started", "deployment"
LAG, VERIFIED = "lag", "verify"
BACKFILL, VERIFYING, ALIVE = "backfill", "verifying", "alive"
THROTTLE, UNMAPPABLE = "throttle", "unmappable"
MARKER_KEYS, TURNED = "marker keys", "turned"
END, ENDING, EXPORT = "end", "ending", "export"
FIELDS = {
    BACKFILL: ("run", "ended"),
    VERIFYING: ("run", "ended"),
    VERIFIED: ("at",),
    f"{LAG}.forward": ("seconds", "at"),
    f"{LAG}.reverse": ("seconds", "at"),
    TURNED: ("at", "serving"),
    DEPLOYMENT: ("stack",),
    END: ("how",),
    ENDING: ("how",),
}
"""The fields of figures without which a status cannot be given."""

SHADOWED = ("shadow_equal", "shadow_in_flight", "shadow_real", "shadow_failed")
"""The counts of a client's shadow reads, by outcome."""

MARKER_ATTRIBUTE = "keyhop-rekey-marker"
"""The attribute of a marker in the serving table: an item with a key and this attribute (S: the
marker) alone. It is neither copied nor compared, and is deleted when it was seen.
"""

LONGEST_BATCH_SECONDS = 360.0
"""Replicate lives for 300 s at most (infra/rekey.py), and clocks differ. An older record belongs to
a batch that was killed, or to one that has ended: its request had no answer, and came late.
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """Remaining work, last recorded at `at` (seconds since 1970): `owner` must be at `place`.

    The token is new each time that the claim is recorded or taken, so a process that was overtaken
    cannot do anything more. `refusal` is why DynamoDB refused the item at its last try. `joint`
    names the row that the claim shares, like the token, with other claims; else it is empty.
    """

    direction: Direction
    place: Key
    owner: Key
    at: float
    token: str
    refusal: str = ""
    joint: str = ""


@dataclass(frozen=True, slots=True)
class Straggler:
    """A write to the table `side`, which did not serve, that bypassed the routers.

    Attributes:
        places: The keys of its images in the other table, where its counterpart was or should be.
        at: When it was last recorded, in seconds since 1970, as is `settled`.
        has_form: Whether its item could be mapped to the other table then, or was deleted. A person
            must write or delete an item that cannot be mapped: the workers cannot.
        body: The row's content, as the condition of a change of the row.
    """

    side: Side
    key: Key
    places: tuple[Key, ...]
    at: float
    settled: float | None = None
    body: str = ""
    has_form: bool = True


@dataclass(frozen=True, slots=True)
class Unmapped:
    """An item that cannot be mapped, with the digest of its key, and a reason without values."""

    digest: str
    reason: str
    at: float
    key: Key
