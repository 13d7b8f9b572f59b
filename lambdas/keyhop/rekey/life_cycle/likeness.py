"""The destination is as the source is: of each feature, what becomes of it, and why. Pure.

*copied*: the destination has it when `create` ends. *later*: after the cutover. *listed*: for a
person, with the command. *left out*: on purpose. *refused*: `create` does nothing until that is
accepted by its word, if there is one. *not here*: a local database does not know it.
"""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from keyhop.dynamodb.schema import KEY_INDEX, KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.rekey.life_cycle.features import Features

Fate = Literal["copied", "later", "listed", "left out", "refused", "not here"]

VIEW = "NEW_AND_OLD_IMAGES"
"""What both streams must hold: a batch needs the places of the old image too."""

UNSEEN = "unseen"
DROP_INDEXES = "drop-indexes"
DROP_LOCAL = "drop-local-indexes"
KEEP_LOCAL = "keep-local-indexes"
ACCEPTS = (UNSEEN, DROP_INDEXES, DROP_LOCAL, KEEP_LOCAL)
"""Words by which somebody accepts what is refused otherwise."""

WARM_FROM_THE_START = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000}
"""Of a new table on demand (AWS documentation, "Understanding DynamoDB warm throughput"); of a
provisioned one it is what is provisioned."""

RESERVED = "aws:"
"""How tags begin that only AWS may set."""

_WHAT = {
    "ttl": "time to live",
    "recovery_days": "point-in-time recovery",
    "tags": "tags",
    "policy": "resource policy",
    "insights": "contributor insights",
    "kinesis": "Kinesis data stream",
    "targets": "auto scaling",
    "alarms": "alarms",
    "plans": "backup plans",
    "aws_key": "encryption",
}
_ONLY_LISTED = ("kinesis", "alarms", "plans")
_ALARM_ANSWERS = frozenset(
    {
        "AlarmName",
        "AlarmArn",
        "AlarmConfigurationUpdatedTimestamp",
        "EvaluationState",
        "StateReason",
        "StateReasonData",
        "StateTransitionedTimestamp",
        "StateUpdatedTimestamp",
        "StateValue",
    }
)
"""What DescribeAlarms tells of an alarm, and PutMetricAlarm does not take."""


@dataclass(frozen=True, slots=True)
class Row:
    """command: what does by hand what is only listed. accept: the words, one of ACCEPTS each, that
    let `create` go on; none: nothing does.
    """

    what: str
    fate: Fate
    says: str
    command: str = ""
    accept: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Likeness:
    """request: what CreateTable is asked for. indexes: the global ones that it has."""

    rows: tuple[Row, ...]
    request: Mapping[str, Any]
    indexes: tuple[str, ...]

    @property
    def refused(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.fate == "refused")


def likeness(
    features: Features, destination: str, keys: KeySpace, accepted: Collection[str] = ()
) -> Likeness:
    """For a destination of that name, with those keys. accepted: of ACCEPTS."""
    table = features.table
    plan = _Plan(features, destination, keys, accepted)
    plan.capacity()
    plan.encryption()
    plan.global_indexes()
    plan.local_indexes()
    plan.streams()
    plan.settings()
    plan.listed()
    if replicas := table.description.get("Replicas"):
        regions = ", ".join(sorted(one.get("RegionName", "?") for one in replicas))
        plan.row(
            "replicas",
            "refused",
            f"{table.bare_name} is a global table ({regions}): changes of several regions have no "
            "common order. Re-key it with one writing region only, after removing the replicas",
        )
    plan.unseen()
    return Likeness(tuple(plan.rows), plan.request(), tuple(plan.kept))


class _Plan:
    def __init__(
        self, features: Features, destination: str, keys: KeySpace, accepted: Collection[str]
    ) -> None:
        self.features = features
        self.table: Table = features.table
        self.told = features.table.description
        self.name = destination
        self.keys = keys
        self.accepted = accepted
        self.rows: list[Row] = []
        self.kept: list[str] = []
        self.types = {one.name: str(one.type) for one in _attributes(keys)}
        self.asked: dict[str, Any] = {}

    def row(
        self, what: str, fate: Fate, says: str, command: str = "", accept: Sequence[str] = ()
    ) -> None:
        self.rows.append(Row(what, fate, says, command, tuple(accept)))

    def request(self) -> dict[str, Any]:
        names = [(self.keys.partition[0].name, "HASH")]
        names += [(self.keys.sort.name, "RANGE")] if self.keys.sort else []
        return {
            "TableName": self.name,
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": type_}
                for name, type_ in self.types.items()
            ],
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in names],
            **self.asked,
        }

    def capacity(self) -> None:
        units = self.table.throughput
        if units is None:
            self.asked["BillingMode"] = "PAY_PER_REQUEST"
            self.row("capacity", "copied", "on demand")
        else:
            self.asked |= {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
            read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
            says = f"provisioned, {read:,} reads and {write:,} writes a second"
            self.row("capacity", "copied", f"{says}: the backfill cannot write faster")
        if most := _limits(self.told):
            self.asked["OnDemandThroughput"] = most
            says = _units(most, "Max", "RequestUnits")
            self.row("limits on demand", "copied", f"{says}: the backfill cannot write faster")
        if warm := _warm(self.told, units):
            self.asked["WarmThroughput"] = warm
            says = _units(warm, "", "UnitsPerSecond")
            self.row("warm throughput", "copied", f"{says}; AWS charges once for what is warmed")
        class_ = self.told.get("TableClassSummary", {}).get("TableClass", "STANDARD")
        if class_ != "STANDARD":
            self.asked["TableClass"] = class_
            self.row("table class", "copied", class_)

    def encryption(self) -> None:
        if specified := encryption_of(self.features):
            self.asked["SSESpecification"] = specified
            key = specified.get("KMSMasterKeyId", "the key that AWS keeps for DynamoDB")
            self.row("encryption", "copied", f"by KMS: {key}; the side table too")

    def global_indexes(self) -> None:
        types = {d["AttributeName"]: d["AttributeType"] for d in self.told["AttributeDefinitions"]}
        sources = {one.name for one in _attributes(self.table.space)}
        made = []
        for entry in self.told.get("GlobalSecondaryIndexes", ()):
            name = entry["IndexName"]
            what = f"index {name}"
            keys = [one["AttributeName"] for one in entry["KeySchema"]]
            clash = [k for k in keys if self.types.get(k, types[k]) != types[k]]
            if name == KEY_INDEX:
                says = "Keyhop's key index: sentinels are not copied; build one on the destination"
                self.row(what, "left out", says)
            elif keys == [one.name for one in _attributes(self.keys)]:
                self.row(what, "left out", "the destination itself has these keys")
            elif clash and DROP_INDEXES not in self.accepted:
                says = f"{clash[0]} is a key of the destination with another type"
                self.row(what, "refused", says, accept=[DROP_INDEXES])
            elif clash:
                self.row(what, "left out", f"{clash[0]} has another type in the destination")
            else:
                changed = sorted(sources.intersection(keys))
                says = ", ".join(keys)
                if entry.get("Projection", {}).get("ProjectionType", "ALL") != "ALL":
                    says += "; it has the destination's keys in the place of the source's"
                if changed:
                    says += f"; {changed[0]} was a key of the source: see plan for what is in it"
                self.types |= {k: types[k] for k in keys}
                made.append(self._index(entry))
                self.kept.append(name)
                self.row(what, "copied", says)
        if made:
            self.asked["GlobalSecondaryIndexes"] = made

    def _index(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        asked = {
            "IndexName": entry["IndexName"],
            "KeySchema": entry["KeySchema"],
            "Projection": self._projection(entry),
        }
        units: dict[str, int] | None = None
        if self.table.throughput is not None:
            given = entry.get("ProvisionedThroughput", {})
            names = ("ReadCapacityUnits", "WriteCapacityUnits")
            units = asked["ProvisionedThroughput"] = {n: max(1, given.get(n, 1)) for n in names}
        if most := _limits(entry):
            asked["OnDemandThroughput"] = most
        if warm := _warm(entry, units):
            asked["WarmThroughput"] = warm
        return asked

    def _projection(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        told = entry.get("Projection", {})
        kind = told.get("ProjectionType", "ALL")
        keys = {one.name for one in _attributes(self.keys)}  # in each index anyway
        if named := [name for name in told.get("NonKeyAttributes", ()) if name not in keys]:
            return {"ProjectionType": kind, "NonKeyAttributes": named}
        return {"ProjectionType": "KEYS_ONLY" if kind == "INCLUDE" else kind}

    def local_indexes(self) -> None:
        types = {d["AttributeName"]: d["AttributeType"] for d in self.told["AttributeDefinitions"]}
        made = []
        for entry in self.told.get("LocalSecondaryIndexes", ()):
            what = f"local index {entry['IndexName']}"
            sort = entry["KeySchema"][1]["AttributeName"]
            fits = self.keys.sort is not None and self.types.get(sort, types[sort]) == types[sort]
            only = "DynamoDB makes local indexes with their table only"
            if KEEP_LOCAL in self.accepted and fits:
                self.types[sort] = types[sort]
                keys = [
                    {"AttributeName": self.keys.partition[0].name, "KeyType": "HASH"},
                    {"AttributeName": sort, "KeyType": "RANGE"},
                ]
                kept = {"IndexName": entry["IndexName"], "KeySchema": keys}
                made.append({**kept, "Projection": self._projection(entry)})
                self.row(what, "copied", f"by {sort}, under the new partition key")
            elif DROP_LOCAL in self.accepted:
                self.row(what, "left out", f"as accepted; {only}")
            else:
                words = [KEEP_LOCAL, DROP_LOCAL] if fits else [DROP_LOCAL]
                says = f"it would order items by {sort} under another partition key, and {only}"
                self.row(what, "refused", says, accept=words)
        if made:
            self.asked["LocalSecondaryIndexes"] = made

    def streams(self) -> None:
        self.asked["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": VIEW}
        after = "" if self.table.stream else "; complete turns it off, as the source had none"
        self.row("stream", "copied", f"{VIEW}: the way back reads it{after}")

    def settings(self) -> None:
        had = self.features
        if had.tags:
            tags = [tag for tag in had.tags if not tag[0].startswith(RESERVED)]
            if tags:
                self.asked["Tags"] = [{"Key": key, "Value": value} for key, value in tags]
                self.row("tags", "copied", ", ".join(key for key, _ in tags) + "; side table too")
            if own := [key for key, _ in had.tags if key.startswith(RESERVED)]:
                self.row("tags of AWS", "left out", f"{', '.join(own)}: only AWS may set them")
        if self.told.get("DeletionProtectionEnabled"):
            self.asked["DeletionProtectionEnabled"] = True
            self.row("deletion protection", "copied", "on; cancel takes it off its own table")
        if had.recovery_days is not None:
            self.row("point-in-time recovery", "copied", f"{had.recovery_days} days")
        if had.ttl is not None:
            says = f"by {had.ttl}: on after the cutover, and then off on the source"
            self.row("time to live", "later", says)
        if had.targets:
            says = f"{len(had.targets)} targets, {len(had.policies)} policies"
            if had.schedules:
                says += f", {len(had.schedules)} scheduled actions"
            self.row("auto scaling", "copied", says)
        if had.policy is not None:
            says = "with the destination's ARN for the source's; look at what it allows"
            self.row("resource policy", "copied", says)
        if had.insights:
            names = ", ".join(name or "the table" for name in sorted(had.insights))
            self.row("contributor insights", "copied", f"of {names}")

    def listed(self) -> None:
        had = self.features
        for arn in had.kinesis:
            command = _aws(
                "dynamodb enable-kinesis-streaming-destination",
                table_name=self.name,
                stream_arn=arn,
            )
            self.row("Kinesis data stream", "listed", f"{arn} gets each change", command)
        for alarm in had.alarms:
            says = f"{alarm['AlarmName']} watches {self.table.bare_name}"
            self.row("alarm", "listed", says, self._alarm(alarm))
        for plan in had.plans:
            says = f"{plan} has backed the source up: a selection by tag follows the tags"
            command = _aws("backup list-backup-selections", backup_plan_id=plan)
            self.row("backup plan", "listed", says, command)

    def _alarm(self, alarm: Mapping[str, Any]) -> str:
        given = {name: told for name, told in alarm.items() if name not in _ALARM_ANSWERS}
        old, new = ({"Name": "TableName", "Value": n} for n in (self.table.bare_name, self.name))
        given["AlarmName"] = f"{alarm['AlarmName']}-{self.name}"
        given = _with(given, old, new)
        return _aws("cloudwatch put-metric-alarm", cli_input_json=json.dumps(given, default=str))

    def unseen(self) -> None:
        for name, why in self.features.unseen.items():
            what = _WHAT[name]
            if self.features.is_local:
                self.row(what, "not here", why)
            elif name in _ONLY_LISTED:
                self.row(what, "listed", f"cannot be seen: {why}")
            elif UNSEEN in self.accepted:
                self.row(what, "left out", f"cannot be seen, as accepted: {why}")
            else:
                self.row(what, "refused", f"cannot be seen: {why}", accept=[UNSEEN])


def encryption_of(features: Features) -> dict[str, Any]:
    """CreateTable's SSESpecification; empty for the key that is DynamoDB's own."""
    told = features.table.description.get("SSEDescription", {})
    if told.get("Status") not in ("ENABLED", "UPDATING") or told.get("SSEType") != "KMS":
        return {}
    # The key that AWS keeps for DynamoDB is not named (API Reference, SSESpecification).
    named = {} if features.aws_key else {"KMSMasterKeyId": told.get("KMSMasterKeyArn")}
    return {"Enabled": True, "SSEType": "KMS", **{k: v for k, v in named.items() if v}}


def _attributes(keys: KeySpace) -> list[Any]:
    return [*keys.partition, *([keys.sort] if keys.sort else ())]


def _with(value: Any, old: Any, new: Any) -> Any:
    """With `new` wherever `old` stands."""
    if value == old:
        return new
    if isinstance(value, dict):
        return {name: _with(one, old, new) for name, one in value.items()}
    return [_with(one, old, new) for one in value] if isinstance(value, list) else value


def _limits(told: Mapping[str, Any]) -> dict[str, int]:
    """Without those of -1: there is none (API Reference, OnDemandThroughput)."""
    given = told.get("OnDemandThroughput") or {}
    names = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
    return {name: given[name] for name in names if given.get(name, -1) > 0}


def _warm(told: Mapping[str, Any], units: Mapping[str, int] | None) -> dict[str, int]:
    """What is above that of a new table, which is its capacity if it is provisioned (`units`)."""
    given = told.get("WarmThroughput") or {}
    new = WARM_FROM_THE_START
    if units is not None:
        new = {name: units[name.replace("UnitsPerSecond", "CapacityUnits")] for name in new}
    if all(given.get(name, 0) <= least for name, least in new.items()):
        return {}
    return {name: max(least, given.get(name, 0)) for name, least in new.items()}


def _units(given: Mapping[str, int], before: str, after: str) -> str:
    parts = [
        f"{given[name]:,} {kind.lower()}s"
        for kind in ("Read", "Write")
        if (name := f"{before}{kind}{after}") in given
    ]
    return " and ".join(parts) + " a second"


def _aws(command: str, **options: str) -> str:
    """A command line of the AWS CLI; names and ARNs are others', so they are quoted."""
    words = [f"--{name.replace('_', '-')} {shlex.quote(to)}" for name, to in options.items()]
    return " ".join(["aws", command, *words])
