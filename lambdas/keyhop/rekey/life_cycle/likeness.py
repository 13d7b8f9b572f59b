"""Decide for each feature of the source how the destination gets it, and why. Pure.

*copied*: the destination has it when `create` ends. *later*: after the cutover. *listed*: a person
does it, with the given command. *left out*: on purpose. *refused*: `create` does nothing until the
user accepts that by its word, if there is one. *not here*: a local database does not have it.
"""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from keyhop.dynamodb.schema import KEY_INDEX, KeySpace
from keyhop.rekey.life_cycle.features import TABLE, Features, unknown_members, words
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

_WARM_FROM_THE_START = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000}
"""The warm throughput of a new table on demand (AWS documentation, "Understanding DynamoDB warm
throughput"); for a provisioned table it is the provisioned capacity.
"""

_ALARM_ANSWERS = words(
    "AlarmName AlarmArn AlarmConfigurationUpdatedTimestamp EvaluationState StateReason "
    "StateReasonData StateTransitionedTimestamp StateUpdatedTimestamp StateValue"
)
"""The members of an alarm that DescribeAlarms returns and PutMetricAlarm does not accept."""

_OF_VECTOR_INDEX = words(
    "IndexName VectorAttribute SearchSchema Projection Dimensions DistanceFunction"
)
"""The members that UpdateTable accepts for a new vector index (CreateVectorIndexAction)."""


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


class Likeness:
    """The decisions about how a destination with these keys gets each feature of the source.

    Attributes:
        rows: A row for each feature that the source has.
        request: The parameters of CreateTable.
        indexes: The names of the destination's global indexes.
    """

    def __init__(
        self,
        features: Features,
        destination: str,
        keys: KeySpace,
        accepted: Collection[str] = (),
    ) -> None:
        """Decide for each feature. `accepted` has words of ACCEPTS, and names of members that
        Keyhop does not know.
        """
        self.rows: list[Row] = []
        self.indexes: tuple[str, ...] = ()
        self._features = features
        self._description = features.table.description
        self._name = destination
        self._keys = keys
        self._accepted = accepted
        self._types: dict[str, str] = {**keys.types}
        self._source_types = {
            defined["AttributeName"]: defined["AttributeType"]
            for defined in self._description["AttributeDefinitions"]
        }
        self._settings: dict[str, Any] = {}
        self._decide_capacity()
        self._decide_encryption()
        self._decide_global_indexes()
        self._decide_local_indexes()
        self._decide_vector_indexes()
        self._decide_stream()
        self._decide_settings()
        self._list_for_a_person()
        self._decide_replicas()
        self._report_unseen()
        self._report_unknown()

    @property
    def refused(self) -> list[Row]:
        return [row for row in self.rows if row.fate == "refused"]

    @property
    def request(self) -> dict[str, Any]:
        names = [(self._keys.partition[0].name, "HASH")]
        names += [(self._keys.sort.name, "RANGE")] if self._keys.sort else []
        return {
            "TableName": self._name,
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": type_}
                for name, type_ in self._types.items()
            ],
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in names],
            **self._settings,
        }

    def _row(
        self, what: str, fate: Fate, says: str, command: str = "", accept: Sequence[str] = ()
    ) -> None:
        self.rows.append(Row(what, fate, says, command, tuple(accept)))

    def _decide_capacity(self) -> None:
        units = self._features.table.throughput
        if units is None:
            self._settings["BillingMode"] = "PAY_PER_REQUEST"
            self._row("capacity", "copied", "on demand")
        else:
            self._settings |= {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
            read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
            says = f"provisioned, {counted(read, 'read')} and {counted(write, 'write')} a second"
            self._row("capacity", "copied", f"{says}: the backfill cannot write faster")
        if maximum := _limits(self._description):
            self._settings["OnDemandThroughput"] = maximum
            says = _units_text(maximum, "Max", "RequestUnits")
            self._row("limits on demand", "copied", f"{says}: the backfill cannot write faster")
        if warm := _warm_beyond(self._description, units):
            self._settings["WarmThroughput"] = warm
            says = _units_text(warm, "", "UnitsPerSecond")
            self._row("warm throughput", "copied", f"{says}; AWS charges once for it")
        class_ = self._description.get("TableClassSummary", {}).get("TableClass", "STANDARD")
        if class_ != "STANDARD":
            self._settings["TableClass"] = class_
            self._row("table class", "copied", class_)

    def _decide_encryption(self) -> None:
        if specified := encryption_of(self._features):
            self._settings["SSESpecification"] = specified
            key = specified.get("KMSMasterKeyId", "the key that AWS keeps for DynamoDB")
            self._row("encryption", "copied", f"by KMS: {key}; the side table too")

    def _decide_global_indexes(self) -> None:
        types = self._source_types
        sources = set(self._features.table.space.types)
        requests = []
        for entry in self._description.get("GlobalSecondaryIndexes", ()):
            name = entry["IndexName"]
            what = f"index {name}"
            keys = [key["AttributeName"] for key in entry["KeySchema"]]
            clash = [k for k in keys if self._types.get(k, types[k]) != types[k]]
            if name == KEY_INDEX:
                says = "Keyhop's key index: sentinels are not copied; build one on the destination"
                self._row(what, "left out", says)
            elif entry["KeySchema"] == self.request["KeySchema"]:
                self._row(what, "left out", "the destination itself has these keys")
            elif clash and DROP_INDEXES not in self._accepted:
                says = f"{clash[0]} is a key of the destination with another type"
                self._row(what, "refused", says, accept=[DROP_INDEXES])
            elif clash:
                self._row(what, "left out", f"{clash[0]} has another type in the destination")
            else:
                changed = sorted(sources.intersection(keys))
                says = ", ".join(keys)
                if entry.get("Projection", {}).get("ProjectionType", "ALL") != "ALL":
                    says += "; it has the destination's keys in the place of the source's"
                if changed:
                    says += f"; {changed[0]} was a key of the source: see plan for its content"
                self._types |= {k: types[k] for k in keys}
                requests.append(_global_index(entry, self._keys, self._features.table.throughput))
                self.indexes += (name,)
                self._row(what, "copied", says)
        if requests:
            self._settings["GlobalSecondaryIndexes"] = requests

    def _decide_local_indexes(self) -> None:
        types = self._source_types
        requests = []
        for entry in self._description.get("LocalSecondaryIndexes", ()):
            what = f"local index {entry['IndexName']}"
            sort = entry["KeySchema"][1]["AttributeName"]
            fits = self._keys.sort is not None and self._types.get(sort, types[sort]) == types[sort]
            only = "DynamoDB makes local indexes with their table only"
            if KEEP_LOCAL in self._accepted and fits:
                self._types[sort] = types[sort]
                requests.append(_local_index(entry, self._keys))
                self._row(what, "copied", f"by {sort}, under the new partition key")
            elif DROP_LOCAL in self._accepted:
                self._row(what, "left out", f"as accepted; {only}")
            else:
                words = [KEEP_LOCAL, DROP_LOCAL] if fits else [DROP_LOCAL]
                says = f"it would order items by {sort} under another partition key, and {only}"
                self._row(what, "refused", says, accept=words)
        if requests:
            self._settings["LocalSecondaryIndexes"] = requests

    def _decide_vector_indexes(self) -> None:
        types = self._source_types
        for entry in self._description.get("VectorIndexes", ()):
            what = f"vector index {entry['IndexName']}"
            command = _vector_index_command(entry, types, self._name)
            says = (
                "SearchVectors finds nothing in the new table until somebody adds the index there"
            )
            if DROP_VECTOR in self._accepted:
                self._row(what, "left out", f"as accepted; {says}", command)
            else:
                says = f"Keyhop does not copy vector indexes: {says}"
                self._row(what, "refused", says, command, accept=[DROP_VECTOR])

    def _decide_stream(self) -> None:
        self._settings["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": VIEW}
        after = (
            "" if self._features.table.stream else "; complete turns it off, as the source had none"
        )
        self._row("stream", "copied", f"{VIEW}: the way back reads it{after}")

    def _decide_settings(self) -> None:
        had = self._features
        if had.tags:
            tags = [tag for tag in had.tags if not tag[0].startswith(RESERVED)]
            if tags:
                self._settings["Tags"] = [{"Key": key, "Value": value} for key, value in tags]
                self._row("tags", "copied", ", ".join(key for key, _ in tags) + "; side table too")
            if reserved := [key for key, _ in had.tags if key.startswith(RESERVED)]:
                self._row(
                    "tags of AWS", "left out", f"{', '.join(reserved)}: only AWS may set them"
                )
        if self._description.get("DeletionProtectionEnabled"):
            self._settings["DeletionProtectionEnabled"] = True
            self._row("deletion protection", "copied", "on; cancel takes it off its own table")
        if had.recovery_days is not None:
            self._row("point-in-time recovery", "copied", f"{counted(had.recovery_days, 'day')}")
        if had.ttl is not None:
            says = f"by {had.ttl}: on after the cutover, and then off on the source"
            self._row("time to live", "later", says)
        if had.targets:
            says = (
                f"{counted(len(had.targets), 'target')}, "
                f"{counted(len(had.policies), 'policy', 'policies')}"
            )
            if had.schedules:
                says += f", {counted(len(had.schedules), 'scheduled action')}"
            self._row("auto scaling", "copied", says)
        if had.policy is not None:
            says = "with the destination's ARN for the source's; look at what it allows"
            self._row("resource policy", "copied", says)
        if had.insights:
            names = ", ".join(name or "the table" for name in sorted(had.insights))
            self._row("contributor insights", "copied", f"of {names}")

    def _list_for_a_person(self) -> None:
        had = self._features
        for arn in had.kinesis:
            command = _aws(
                "dynamodb enable-kinesis-streaming-destination",
                table_name=self._name,
                stream_arn=arn,
            )
            self._row("Kinesis data stream", "listed", f"{arn} gets each change", command)
        for alarm in had.alarms:
            says = f"{alarm['AlarmName']} watches {self._features.table.bare_name}"
            command = _alarm_command(alarm, self._features.table.bare_name, self._name)
            self._row("alarm", "listed", says, command)
        for plan in had.plans:
            says = f"{plan} has backed the source up: a selection by tag follows the tags"
            command = _aws("backup list-backup-selections", backup_plan_id=plan)
            self._row("backup plan", "listed", says, command)

    def _decide_replicas(self) -> None:
        replicas = [
            *self._description.get("Replicas", ()),
            *self._description.get("GlobalTableWitnesses", ()),
        ]
        if replicas:
            regions = ", ".join(sorted(replica.get("RegionName", "?") for replica in replicas))
            self._row(
                "replicas",
                "refused",
                f"{self._features.table.bare_name} is a global table ({regions}): changes of "
                "several regions have no common order. Re-key it with one writing region only, "
                "after removing the replicas",
            )

    def _report_unseen(self) -> None:
        for name, why in self._features.unseen.items():
            what = _WHAT[name]
            if self._features.is_local:
                self._row(what, "not here", why)
            elif name in _ONLY_LISTED:
                self._row(what, "listed", f"cannot be seen: {why}")
            elif UNSEEN in self._accepted:
                self._row(what, "left out", f"cannot be seen, as accepted: {why}")
            else:
                self._row(what, "refused", f"cannot be seen: {why}", accept=[UNSEEN])

    def _report_unknown(self) -> None:
        """Report the members that Keyhop does not know, once for each member."""
        names = {*unknown_members(self._description, TABLE), *self._features.unknown}
        for name in sorted(names):
            if name in self._accepted:
                self._row(name, "left out", "as accepted; Keyhop does not know what it is")
            else:
                says = "the source has this, and this version of Keyhop does not know what it is"
                self._row(name, "refused", says, accept=[name])


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


def export_command(table_arn: str) -> str:
    """Return the command that exports a table, which needs point-in-time recovery."""
    return _aws(
        "dynamodb export-table-to-point-in-time",
        table_arn=table_arn,
        s3_bucket="BUCKET",
        export_format="DYNAMODB_JSON",
    )


def _global_index(
    entry: Mapping[str, Any], keys: KeySpace, table_units: Mapping[str, int] | None
) -> dict[str, Any]:
    """Return a global index by its `entry` in DescribeTable; `table_units` are None on demand."""
    request = {
        "IndexName": entry["IndexName"],
        "KeySchema": entry["KeySchema"],
        "Projection": _projection(entry, keys),
    }
    units: dict[str, int] | None = None
    if table_units is not None:
        provisioned = entry.get("ProvisionedThroughput", {})
        names = ("ReadCapacityUnits", "WriteCapacityUnits")
        units = request["ProvisionedThroughput"] = {n: max(1, provisioned.get(n, 1)) for n in names}
    if maximum := _limits(entry):
        request["OnDemandThroughput"] = maximum
    if warm := _warm_beyond(entry, units):
        request["WarmThroughput"] = warm
    return request


def _local_index(entry: Mapping[str, Any], keys: KeySpace) -> dict[str, Any]:
    """Return a local index with the same sort key, under the destination's partition key."""
    names = {"HASH": keys.partition[0].name, "RANGE": entry["KeySchema"][1]["AttributeName"]}
    return {
        "IndexName": entry["IndexName"],
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for kind, name in names.items()],
        "Projection": _projection(entry, keys),
    }


def _projection(entry: Mapping[str, Any], keys: KeySpace) -> dict[str, Any]:
    """Return the projection without the destination's keys, which each index contains anyway."""
    projection = entry.get("Projection", {})
    kind = projection.get("ProjectionType", "ALL")
    if named := [name for name in projection.get("NonKeyAttributes", ()) if name not in keys.types]:
        return {"ProjectionType": kind, "NonKeyAttributes": named}
    return {"ProjectionType": "KEYS_ONLY" if kind == "INCLUDE" else kind}


def _limits(description: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits that are set; -1 means no limit (API Reference, OnDemandThroughput)."""
    found_limits = description.get("OnDemandThroughput") or {}
    names = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
    return {name: found_limits[name] for name in names if found_limits.get(name, -1) > 0}


def _warm_beyond(description: Mapping[str, Any], units: Mapping[str, int] | None) -> dict[str, int]:
    """Return the warm throughput if it exceeds a new table's, or the provisioned `units`."""
    warm = description.get("WarmThroughput") or {}
    new = _WARM_FROM_THE_START
    if units is not None:
        new = {name: units[name.replace("UnitsPerSecond", "CapacityUnits")] for name in new}
    if all(warm.get(name, 0) <= minimum for name, minimum in new.items()):
        return {}
    return {name: max(minimum, warm.get(name, 0)) for name, minimum in new.items()}


def _units_text(values: Mapping[str, int], before: str, after: str) -> str:
    """Return the reads and writes a second as text, for names that begin and end so."""
    parts = [
        f"{values[name]:,} {kind.lower()}s"
        for kind in ("Read", "Write")
        if (name := f"{before}{kind}{after}") in values
    ]
    return " and ".join(parts) + " a second"


def _alarm_command(described: Mapping[str, Any], old: str, new: str) -> str:
    """Return the command that copies one table's alarm (from DescribeAlarms) to another table."""
    options = {name: value for name, value in described.items() if name not in _ALARM_ANSWERS}
    before, after = ({"Name": "TableName", "Value": name} for name in (old, new))
    options["AlarmName"] = f"{described['AlarmName']}-{new}"
    options = _with(options, before, after)
    return _aws("cloudwatch put-metric-alarm", cli_input_json=json.dumps(options, default=str))


def _vector_index_command(
    described: Mapping[str, Any], types: Mapping[str, str], table: str
) -> str:
    """Return the command that adds a vector index as described; `types` are by attribute name."""
    create = {name: described[name] for name in _OF_VECTOR_INDEX if name in described}
    names = [element["AttributeName"] for element in described.get("SearchSchema", ())]
    defined = [
        {"AttributeName": name, "AttributeType": types[name]} for name in names if name in types
    ]
    definitions = {"attribute_definitions": json.dumps(defined)} if defined else {}
    updates = json.dumps([{"Create": create}])
    options = {"table_name": table, **definitions, "vector_index_updates": updates}
    return _aws("dynamodb update-table", **options)


def _with(value: Any, old: Any, new: Any) -> Any:
    """Return the value with each occurrence of `old` replaced by `new`."""
    if value == old:
        return new
    if isinstance(value, dict):
        return {name: _with(content, old, new) for name, content in value.items()}
    return [_with(content, old, new) for content in value] if isinstance(value, list) else value


def _aws(command: str, **options: str) -> str:
    """Return a command line of the AWS CLI, quoted, as other people choose names and ARNs."""
    words = [f"--{name.replace('_', '-')} {shlex.quote(to)}" for name, to in options.items()]
    return " ".join(["aws", command, *words])
