"""Decide for each feature of the source how the destination gets it, and why. Pure.

*copied*: the destination has it when `create` ends. *later*: after the cutover. *listed*: a person
does it, with the given command. *left out*: on purpose. *refused*: `create` does nothing until the
user accepts that by its word, if there is one. *not here*: a local database does not have it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from keyhop.dynamodb.schema import KEY_INDEX, KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.rekey.life_cycle import by_hand
from keyhop.rekey.life_cycle.features import Features
from keyhop.rekey.life_cycle.indexes import global_index, local_index
from keyhop.rekey.life_cycle.known import TABLE, unknown_members
from keyhop.rekey.life_cycle.throughput import limits, units_text, warm_beyond
from keyhop.wording import counted

Fate = Literal["copied", "later", "listed", "left out", "refused", "not here"]

VIEW = "NEW_AND_OLD_IMAGES"
"""The view of both streams: a batch needs the places of the old image too."""

UNSEEN = "unseen"
DROP_INDEXES = "drop-indexes"
DROP_LOCAL = "drop-local-indexes"
KEEP_LOCAL = "keep-local-indexes"
DROP_VECTOR = "drop-vector-indexes"
ACCEPTS = (UNSEEN, DROP_INDEXES, DROP_LOCAL, KEEP_LOCAL, DROP_VECTOR)
"""Words by which the user accepts a loss; unknown members of an answer are accepted by name."""

RESERVED = "aws:"
"""The beginning of tags that only AWS may set."""

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


@dataclass(frozen=True, slots=True)
class Row:
    """A feature of the source, and how the destination gets it; `command` does the rest by hand.
    Each word of `accept`, a value of --accept, makes `create` proceed; without one it cannot.
    """

    what: str
    fate: Fate
    says: str
    command: str = ""
    accept: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """Return why `create` does not begin, and the words that accept it."""
        words = f" (accept it by {' or '.join(self.accept)})" if self.accept else ""
        return f"{self.what}: {self.says}{words}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Likeness:
    """The destination's features, the parameters of CreateTable, and its global indexes' names."""

    rows: tuple[Row, ...]
    request: Mapping[str, Any]
    indexes: tuple[str, ...]

    @property
    def refused(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.fate == "refused")


def likeness(
    features: Features, destination: str, keys: KeySpace, accepted: Collection[str] = ()
) -> Likeness:
    """Return how a destination with these keys gets each feature of the source. `accepted` has
    words of ACCEPTS, and names of members that Keyhop does not know.
    """
    table = features.table
    plan = _Plan(features, destination, keys, accepted)
    plan.capacity()
    plan.encryption()
    plan.global_indexes()
    plan.local_indexes()
    plan.vector_indexes()
    plan.streams()
    plan.settings()
    plan.listed()
    description = table.description
    if replicas := [*description.get("Replicas", ()), *description.get("GlobalTableWitnesses", ())]:
        regions = ", ".join(sorted(replica.get("RegionName", "?") for replica in replicas))
        plan.row(
            "replicas",
            "refused",
            f"{table.bare_name} is a global table ({regions}): changes of several regions have no "
            "common order. Re-key it with one writing region only, after removing the replicas",
        )
    plan.unseen()
    plan.unknown()
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
        self.types: dict[str, str] = {**keys.types}
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
            says = f"provisioned, {counted(read, 'read')} and {counted(write, 'write')} a second"
            self.row("capacity", "copied", f"{says}: the backfill cannot write faster")
        if maximum := limits(self.told):
            self.asked["OnDemandThroughput"] = maximum
            says = units_text(maximum, "Max", "RequestUnits")
            self.row("limits on demand", "copied", f"{says}: the backfill cannot write faster")
        if warm := warm_beyond(self.told, units):
            self.asked["WarmThroughput"] = warm
            says = units_text(warm, "", "UnitsPerSecond")
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
        sources = set(self.table.space.types)
        requests = []
        for entry in self.told.get("GlobalSecondaryIndexes", ()):
            name = entry["IndexName"]
            what = f"index {name}"
            keys = [key["AttributeName"] for key in entry["KeySchema"]]
            clash = [k for k in keys if self.types.get(k, types[k]) != types[k]]
            if name == KEY_INDEX:
                says = "Keyhop's key index: sentinels are not copied; build one on the destination"
                self.row(what, "left out", says)
            elif keys == list(self.keys.types):
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
                requests.append(global_index(entry, self.keys, self.table.throughput))
                self.kept.append(name)
                self.row(what, "copied", says)
        if requests:
            self.asked["GlobalSecondaryIndexes"] = requests

    def local_indexes(self) -> None:
        types = {d["AttributeName"]: d["AttributeType"] for d in self.told["AttributeDefinitions"]}
        requests = []
        for entry in self.told.get("LocalSecondaryIndexes", ()):
            what = f"local index {entry['IndexName']}"
            sort = entry["KeySchema"][1]["AttributeName"]
            fits = self.keys.sort is not None and self.types.get(sort, types[sort]) == types[sort]
            only = "DynamoDB makes local indexes with their table only"
            if KEEP_LOCAL in self.accepted and fits:
                self.types[sort] = types[sort]
                requests.append(local_index(entry, self.keys))
                self.row(what, "copied", f"by {sort}, under the new partition key")
            elif DROP_LOCAL in self.accepted:
                self.row(what, "left out", f"as accepted; {only}")
            else:
                words = [KEEP_LOCAL, DROP_LOCAL] if fits else [DROP_LOCAL]
                says = f"it would order items by {sort} under another partition key, and {only}"
                self.row(what, "refused", says, accept=words)
        if requests:
            self.asked["LocalSecondaryIndexes"] = requests

    def vector_indexes(self) -> None:
        types = {d["AttributeName"]: d["AttributeType"] for d in self.told["AttributeDefinitions"]}
        for entry in self.told.get("VectorIndexes", ()):
            what = f"vector index {entry['IndexName']}"
            command = by_hand.vector_index(entry, types, self.name)
            says = (
                "SearchVectors finds nothing in the new table until somebody adds the index there"
            )
            if DROP_VECTOR in self.accepted:
                self.row(what, "left out", f"as accepted; {says}", command)
            else:
                says = f"Keyhop does not copy vector indexes: {says}"
                self.row(what, "refused", says, command, accept=[DROP_VECTOR])

    def unknown(self) -> None:
        """Report the members that Keyhop does not know, once for each member."""
        names = {*unknown_members(self.told, TABLE), *self.features.unknown}
        for name in sorted(names):
            if name in self.accepted:
                self.row(name, "left out", "as accepted; Keyhop does not know what it is")
            else:
                says = "the source has this, and this version of Keyhop does not know what it is"
                self.row(name, "refused", says, accept=[name])

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
            if reserved := [key for key, _ in had.tags if key.startswith(RESERVED)]:
                self.row("tags of AWS", "left out", f"{', '.join(reserved)}: only AWS may set them")
        if self.told.get("DeletionProtectionEnabled"):
            self.asked["DeletionProtectionEnabled"] = True
            self.row("deletion protection", "copied", "on; cancel takes it off its own table")
        if had.recovery_days is not None:
            self.row("point-in-time recovery", "copied", f"{counted(had.recovery_days, 'day')}")
        if had.ttl is not None:
            says = f"by {had.ttl}: on after the cutover, and then off on the source"
            self.row("time to live", "later", says)
        if had.targets:
            says = (
                f"{counted(len(had.targets), 'target')}, "
                f"{counted(len(had.policies), 'policy', 'policies')}"
            )
            if had.schedules:
                says += f", {counted(len(had.schedules), 'scheduled action')}"
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
            command = by_hand.kinesis(self.name, arn)
            self.row("Kinesis data stream", "listed", f"{arn} gets each change", command)
        for alarm in had.alarms:
            says = f"{alarm['AlarmName']} watches {self.table.bare_name}"
            command = by_hand.alarm(alarm, self.table.bare_name, self.name)
            self.row("alarm", "listed", says, command)
        for plan in had.plans:
            says = f"{plan} has backed the source up: a selection by tag follows the tags"
            self.row("backup plan", "listed", says, by_hand.backups(plan))

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
    """Return CreateTable's SSESpecification; empty for the key that DynamoDB owns."""
    description = features.table.description.get("SSEDescription", {})
    if (
        description.get("Status") not in ("ENABLED", "UPDATING")
        or description.get("SSEType") != "KMS"
    ):
        return {}
    # The key that AWS keeps for DynamoDB is not named (API Reference, SSESpecification).
    named = {} if features.aws_key else {"KMSMasterKeyId": description.get("KMSMasterKeyArn")}
    return {"Enabled": True, "SSEType": "KMS", **{k: v for k, v in named.items() if v}}
