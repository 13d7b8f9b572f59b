"""Make commands of the AWS CLI for the tasks that Keyhop leaves to a person. Pure."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

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
"""The members of an alarm that DescribeAlarms returns and PutMetricAlarm does not accept."""

_OF_VECTOR_INDEX = (
    "IndexName",
    "VectorAttribute",
    "SearchSchema",
    "Projection",
    "Dimensions",
    "DistanceFunction",
)
"""The members that UpdateTable accepts for a new vector index (CreateVectorIndexAction)."""


def kinesis(table: str, stream: str) -> str:
    """Return the command that sends a table's changes to a Kinesis data stream."""
    return _aws(
        "dynamodb enable-kinesis-streaming-destination", table_name=table, stream_arn=stream
    )


def alarm(described: Mapping[str, Any], old: str, new: str) -> str:
    """Return the command that copies one table's alarm (from DescribeAlarms) to another table."""
    options = {name: value for name, value in described.items() if name not in _ALARM_ANSWERS}
    before, after = ({"Name": "TableName", "Value": name} for name in (old, new))
    options["AlarmName"] = f"{described['AlarmName']}-{new}"
    options = _with(options, before, after)
    return _aws("cloudwatch put-metric-alarm", cli_input_json=json.dumps(options, default=str))


def vector_index(described: Mapping[str, Any], types: Mapping[str, str], table: str) -> str:
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


def backups(plan: str) -> str:
    """Return the command that lists the tables of a backup plan."""
    return _aws("backup list-backup-selections", backup_plan_id=plan)


def export(table_arn: str) -> str:
    """Return the command that exports a table, which needs point-in-time recovery."""
    return _aws(
        "dynamodb export-table-to-point-in-time",
        table_arn=table_arn,
        s3_bucket="BUCKET",
        export_format="DYNAMODB_JSON",
    )


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
