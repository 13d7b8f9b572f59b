"""The side table: control, plan, claims, what batches have begun, markers, clients, stragglers.

A table of its own beside the destination, with the partition key `pk` and the sort key `sk` (both
S), on demand; `complete` deletes it. So neither of the two tables carries anything of Keyhop's.

    pk         sk                            holds
    control    control                       Control, as JSON; a change is a swap of its revision
    plan       plan                          Pair, as JSON
    claims#D   <place>|<owner>               work that is left: a source item, and a place of its
    claims#D   joint|<random>                the same of several items, which are repaired together
    begun#D    <shard>#<sequence number>     a batch that may be under way
    unmapped#D <digest of the key>           an item without a form in the other table
    marker     <random>                      a marker, and where it was seen
    client     <id>                          a router: which revision it goes by, and until when
    straggler  <side>|<key>                  a write that bypassed the routers
    told       <name>                        a figure, as JSON (figures.py)

D is the direction, forward or reverse. Keys stand there as JSON texts of typed values; a name that
is too long for a sort key is its SHA-256. Content is JSON text in the attribute `body`, beside what
conditions go by: `revision`, `tries` (how often a batch has begun), `stamp` (the token of a claim).
"""

from dataclasses import dataclass

from keyhop.dynamodb.values import Key
from keyhop.rekey.control import Direction, Side

KEYS = ("pk", "sk")
CONTROL, PLAN, CLAIMS, BEGUN = "control", "plan", "claims", "begun"
UNMAPPED = "unmapped"
MARKER, CLIENT, STRAGGLER, TOLD = "marker", "client", "straggler", "told"
SHADOWED = ("shadow_equal", "shadow_in_flight", "shadow_real", "shadow_failed")
"""Of a client: how many of its shadow reads have come to what."""

MARKER_ATTRIBUTE = "keyhop-rekey-marker"
"""Of a marker in the table that serves: an item with a key and this (S: the marker) alone. Nobody
copies or compares it, and it is deleted when it was seen.
"""

LONGEST_BATCH_SECONDS = 360.0
"""Replicate lives for 300 s at most (infra/rekey.py), and clocks differ: a note that is older is of
a batch that was killed, or of one that has ended: its request had no answer, and came late."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that may be under way. shard: what tells its stream's shard, or its first record,
    from others. at: when it began last (seconds since 1970). tries: how often it has begun.
    """

    direction: Direction
    shard: str
    sequence: str
    at: float = 0.0
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """Work that is left to do: the item `owner` has to be at `place`.

    Attributes:
        at: When this was last noted, in seconds since 1970.
        token: Another one each time that the claim is noted or taken. So a process that was
            overtaken does nothing more.
        refusal: Why DynamoDB refused the item at its last try; empty if it did not.
        joint: The name of its row if it shares the row, and the token, with other claims; empty if
            it has a row of its own.
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
    """A write to the table that did not serve, which bypassed the routers.

    Attributes:
        side: The table that was written.
        key: The primary key there.
        places: The keys of its images in the other table, where its counterpart was or should be.
        at: When it was last noted, in seconds since 1970.
        settled: When it was settled; None if it was not.
        has_form: Whether its item had a form in the other table when it was noted, or was deleted.
            Nobody's workers write or delete an item without one: somebody has to.
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
    """A source item without a form in the other table. digest: of its key. reason: no values."""

    digest: str
    reason: str
    at: float
    key: Key
