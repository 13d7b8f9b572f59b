"""The shapes of the outputs of the state machines and functions.

The code assembles these objects from several parts, which have no classes. So this module declares
them, and each output in a test is validated against them (watch.py). Amounts are JSON numbers,
which may have no decimal point.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from keyhop.report.findings import Severity

Method = Literal["skip", "scan", "index", "parts"]
ReadUnits = Annotated[float, "read units, as DynamoDB charged them"]
Dollars = Annotated[float, "on demand, at the price that is named beside it"]


class Segments(TypedDict):
    total: int
    ended: int
    most_keys: Annotated[int, "keys of the largest"]
    mean_keys: float
    skew: Annotated[float, "the largest by the mean"]


Cost = TypedDict(  # a field is a keyword of Python
    "Cost",
    {
        "dynamodb": float,
        "lambda": float,
        "step_functions": float,
        "s3": float,
        "total": float,
        "prices": Annotated[str, "which, and of when"],
        "verify": NotRequired[Annotated[float, "of the check, all services together"]],
    },
)
"""Dollars by service."""


class Logical(TypedDict):
    physical_keys: int
    folded: int
    separator: str
    metadata: str | None


class Verified(TypedDict):
    share: float
    drawn: Annotated[int, "segments to be read through"]
    segments: Annotated[int, "segments that were"]
    keys: int
    missing: int
    appeared: int
    surplus: int
    left_out: NotRequired[int]
    read_units: ReadUnits
    seconds: float


class Finished(TypedDict):
    """A finished run of any kind."""

    says: NotRequired[Annotated[str, "the result in a sentence, for people"]]
    run: str
    finished: Literal[True]
    table: str
    index: str | None
    format: Literal["jsonl", "csv"]
    keys: int
    requests: int
    read_units: ReadUnits
    seconds: Annotated[float, "of the execution, by the clock"]
    throttles: Annotated[dict[str, int], "by the service's reasons"]
    cost: Cost
    segments: Segments
    manifest: Annotated[str, "the address of manifest.json in S3"]
    parts: Annotated[str, "the address of parts.json in S3"]


class Run(Finished):
    """A finished run; the keys are in its parts."""

    method: Method
    logical: NotRequired[Logical]
    verify: NotRequired[Verified]
    doubt: NotRequired[Annotated[str, "why the key index may be out of date"]]
    leftOut: NotRequired[Annotated[int, "collections that hold their sentinel alone"]]
    keyIndex: NotRequired[Annotated[dict[str, float], "what a walk over a key index has done"]]


class EachRun(Finished):
    """A finished run of ForEachKey; its parts have the outcome of each key."""

    method: Literal["listed"]
    outcomes: NotRequired[Annotated[dict[str, int], "how many keys, by what became of them"]]
    writeUnits: NotRequired[float]


class BackfillRun(Finished):
    """A finished run of RekeyBackfill; the copied items are in the destination, and in no part."""

    method: Literal["scan"]
    outcomes: NotRequired[Annotated[dict[str, int], "how many items, by what became of them"]]
    writeUnits: NotRequired[float]


class Compared(TypedDict):
    """The result of a verification of a re-key; times are seconds since 1970."""

    run: str
    began: float
    ended: float
    at: Annotated[float, "as ended"]
    finished: Literal[True]
    items: Annotated[int, "of the source, that have a form under the other key"]
    share: Annotated[float, "of both tables; 1 for all"]
    repair: bool
    source_items: int
    destination_items: int
    missing: Annotated[int, "of the source, and not in the destination"]
    surplus: Annotated[int, "of the destination, and of nothing in the source"]
    changed: Annotated[int, "with other attributes than they should have"]
    contended: Annotated[int, "places that several source items want"]
    foreign: Annotated[int, "of the surplus, those from which no source key follows: never deleted"]
    bypassed: Annotated[int, "of all these, items with an unsettled straggler: never repaired"]
    unsettled: Annotated[int, "places that were changing at every look, and were not settled"]
    in_flight: Annotated[int, "that differed, and were equal at a later look, or were settled"]
    equal: Annotated[int, "of a sample: those that were looked up and are equal"]
    repaired: int
    unmappable: Annotated[int, "source items without a form under the other key"]
    irreversible: Annotated[int, "source items without a way back"]
    left_out: Annotated[int, "by the template, on purpose"]
    ours: Annotated[int, "sentinels of a key index"]
    left: Annotated[int, "differences that were not repaired, and places that were not settled"]
    turns: Annotated[int, "how often the serving table had changed when it began"]
    is_clean: Annotated[bool, "whether all was compared, and nothing is left"]


class Digests(TypedDict):
    """The preceding run, which read both tables."""

    run: str
    keys: Annotated[int, "items of both tables"]
    buckets: int
    read_units: ReadUnits
    dollars: Annotated[float, "of all services; the comparison's own are in cost"]


class VerifyRun(Finished):
    """A finished run of RekeyVerify; each difference is in its parts."""

    method: Literal["listed"]
    compared: Compared
    digests: Digests


class ControlItem(TypedDict):
    """The control item of a re-key (lambdas/keyhop/rekey/control.py)."""

    serving: Literal["source", "destination"]
    stage: Literal["open", "closing", "frozen", "fenced", "turned"]
    revision: int
    freeze_limit: float
    long_lease: float
    replicating: bool
    shadow: float
    expected_clients: int
    turns: Annotated[int, "how often the serving table has changed"]


class ShutOrOpen(TypedDict):
    """A gate: a condition for the beginning of a cutover or a rollback."""

    name: str
    open: bool
    says: str
    remedy: NotRequired[str]


class CutOverEnd(TypedDict):
    """The output of RekeyCutOver, after which the table serves, or of a dry run."""

    action: Literal["done", "looked"]
    seconds: int
    control: ControlItem
    gates: list[ShutOrOpen]
    why: NotRequired[str]
    pause: NotRequired[Annotated[float, "seconds for which writes have waited"]]


class Interval(TypedDict):
    estimate: float
    low: float
    high: float | None


class Keys(TypedDict):
    """Keys with a 95 % interval."""

    estimate: int
    low: int
    high: int | None
    exact: bool
    sampled: bool


class MethodCost(TypedDict):
    read_units: Interval
    dollars: Dollars
    requests: int
    seconds: float
    at_least: Annotated[bool, "whether it may cost much more"]


class Methods(TypedDict):
    skip: NotRequired[MethodCost]
    scan: MethodCost
    published: NotRequired[MethodCost]


class Spent(TypedDict):
    read_units: ReadUnits
    requests: int
    dollars: Dollars
    price: str


class Estimate(TypedDict):
    """The estimate of a run, by dryRun."""

    table: str
    index: str | None
    method: Method
    reason: str
    segments: int
    workers: int
    threads: int
    groups: int
    keys: Keys
    methods: Methods
    cost: Cost
    spent: Spent
    file: Annotated[str, "where the same is kept in S3"]
    software_version: str


class Visits(TypedDict):
    """The work of ForEachKey on the keys, after they are listed."""

    keys: int
    write_units: float
    read_units: ReadUnits
    dollars: Dollars
    prices: str
    seconds: Annotated[float, "at the least, at maxWriteRate"]


class EachEstimate(Estimate):
    """The estimate of a dry run, for the list of keys and the work on them."""

    each: Visits


class VisitsEstimate(TypedDict):
    """The estimate of a dry run whose keys come from a finished run."""

    table: str
    reason: str
    each: Visits
    file: Annotated[str, "where the same is kept in S3"]


class CompareEstimate(TypedDict):
    """The estimate of a verification, from the table sizes that the service reports."""

    table: str
    reason: str
    read_units: ReadUnits
    dollars: Dollars
    price: str
    each: Visits
    file: Annotated[str, "where the same is kept in S3"]


class Walk(TypedDict):
    """The result of a walk over all collections."""

    kind: Literal["check", "build", "verify", "remove"]
    collections: int
    drift: Annotated[int, "missing, surplus and occupied"]
    missing: Annotated[int, "collections without their sentinel"]
    surplus: Annotated[int, "sentinels without a collection"]
    occupied: Annotated[int, "an item of the user's where a sentinel should be"]
    late: Annotated[int, "what the keeper put right within graceSeconds"]
    repaired: int
    put: int
    deleted: int
    requests: int
    strong_reads: int
    read_units: ReadUnits
    write_units: float
    dollars: Dollars
    price: str
    seconds: float
    ended: str
    software_version: str


class Verification(Walk):
    remaining: Annotated[int, "how much of the drift is still there"]
    keeper: Annotated[bool, "whether one followed the table before and after"]
    kept_by: Annotated[dict[str, str], "mappings of the keeper, and when each was changed last"]
    stream: str | None


class Skipped(TypedDict):
    """The output of an execution that did nothing."""

    table: str
    skipped: Annotated[str, "why"]


class Verify(TypedDict):
    table: str
    verification: Verification
    report: Annotated[str, "the address of verification.json in S3"]


class Units(TypedDict):
    read: int
    write: int


class Capacity(Units):
    scaled: Annotated[bool | None, "whether it has auto scaling; null: that cannot be seen"]
    refused: Annotated[str | None, "what the service refused when the capacity was set, or null"]


class CapacityPlan(TypedDict):
    """The capacity of the index of a table with provisioned capacity."""

    building: Units
    kept: Annotated[Units, "after the build"]
    scaled: Annotated[bool | None, "whether it scales as the table does; null: not to be seen"]
    dollars_while_building: Dollars
    dollars_a_month: Dollars
    price: str


class Build(TypedDict):
    table: str
    build: Walk
    verification: Verification
    report: Annotated[str, "the address of verification.json in S3"]
    capacity: Annotated[Capacity | None, "of the index; null for a table on demand"]


class SpentOnIndex(TypedDict):
    read_units: ReadUnits


class BuildEstimate(TypedDict):
    """The estimate of a build, by dryRun."""

    table: str
    keys: Keys
    write_units: float
    write_units_per_key: float
    enters: Annotated[list[str], "indexes of the table that sentinels would be in as well"]
    hot: Annotated[list[str], "those in which all would have one partition key"]
    read_units: ReadUnits
    dollars: Dollars
    dollars_low: NotRequired[Annotated[float, "at least"]]
    dollars_high: NotRequired[Annotated[float | None, "at most; null where none is known"]]
    price: str
    secondsOfWriting: float
    capacity: Annotated[CapacityPlan | None, "null for a table on demand"]
    spent: SpentOnIndex


class Removed(TypedDict):
    table: str
    index: None
    sentinels: Literal[0]
    elsewhere: Annotated[int, "rows of the index at another sort key, which stay in the table"]
    stream: Annotated[str | None, "of the table, if it is on"]
    mappings: Annotated[int, "of the keeper, which are left"]
    as_before: Annotated[bool, "whether the table is as before the build"]
    refused: Annotated[str | None, "why auto scaling of the index may remain, or null"]


class DrainState(TypedDict):
    """The state of a drain; the output of DrainShards has the action `done`."""

    action: Literal["wait", "again", "done", "called off"]
    seconds: Annotated[int, "until the next step"]
    phase: str
    moved: Annotated[int, "items, by the last step"]
    readable: Annotated[int, "shards that are read"]
    shards: Annotated[int, "shards that are written"]
    begun: bool
    last_updated: NotRequired[Annotated[int, "epoch second, of the shard metadata"]]


class Failed(TypedDict):
    index: Annotated[int, "the item's place in the input"]
    error: str
    message: str


class Result(TypedDict):
    index: int
    status: Literal["written", "failed"]


class Written(TypedDict):
    written: int
    failed: list[Failed]
    results: Annotated[list[Result], "each item, in the order of the input"]


class Page(TypedDict):
    items: Annotated[list[dict[str, Any]], "in the order of the sort key"]
    count: int
    pageToken: Annotated[str | None, "for the items that follow; null at the end"]


Proposal = TypedDict(  # a field is a keyword of Python here, too
    "Proposal",
    {
        "table": str,
        "key": Any,
        "typed": NotRequired[Literal[True]],
        "from": Annotated[int, "shards it has"],
        "to": Annotated[int, "shards that would do"],
        "reason": str,
        "started": Annotated[bool, "whether DrainShards was started for it"],
    },
)


class ReportFound(TypedDict):
    """A finding in a sentence; its target is an index, or empty for the table."""

    rule: Annotated[str, "as A6"]
    target: str
    severity: Severity
    summary: str


class BySeverity(TypedDict):
    """The number of findings by severity."""

    high: int
    medium: int
    low: int
    info: int


class ReportRun(TypedDict):
    """A finished report on a table's keys."""

    table: str
    findings: BySeverity
    new_high: Annotated[list[str], "rules that the report before had not found of severity high"]
    unknown: Annotated[int, "rules of which nothing can be said yet; the report has the price"]
    found: Annotated[list[ReportFound], "the worst first, 20 at most"]
    read_units: ReadUnits
    dollars: Dollars
    seconds: Annotated[float, "of the execution, by the clock"]
    run: str
    page: Annotated[str, "the address of report.html in S3"]
    report: Annotated[str, "the address of report.json in S3"]


class ReportEstimate(TypedDict):
    """The maximum cost of a report, by dryRun."""

    table: str
    read_units: Annotated[float | None, "null where all of the table is to be looked at"]
    dollars: Annotated[float | None, "of reads, in US dollars"]
    items: Annotated[int, "as DynamoDB tells them, up to six hours old"]
    bytes: int
