"""Commands of the AWS CLI by which a person does what Keyhop leaves to him. Pure."""

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
"""What DescribeAlarms tells of an alarm, and PutMetricAlarm does not take."""

_OF_VECTOR_INDEX = (
    "IndexName",
    "VectorAttribute",
    "SearchSchema",
    "Projection",
    "Dimensions",
    "DistanceFunction",
)
"""What UpdateTable takes for a new vector index (CreateVectorIndexAction)."""


def kinesis(table: str, stream: str) -> str:
    """Have a Kinesis data stream get the changes of a table."""
    return _aws(
        "dynamodb enable-kinesis-streaming-destination", table_name=table, stream_arn=stream
    )


def alarm(described: Mapping[str, Any], old: str, new: str) -> str:
    """An alarm of one table, put for another one too. described: as by DescribeAlarms."""
    given = {name: told for name, told in described.items() if name not in _ALARM_ANSWERS}
    before, after = ({"Name": "TableName", "Value": name} for name in (old, new))
    given["AlarmName"] = f"{described['AlarmName']}-{new}"
    given = _with(given, before, after)
    return _aws("cloudwatch put-metric-alarm", cli_input_json=json.dumps(given, default=str))


def vector_index(described: Mapping[str, Any], types: Mapping[str, str], table: str) -> str:
    """Return the command that adds a vector index of one table to another table.

    Args:
        described: The index as DescribeTable describes it.
        types: The types of the first table's attributes, by name.
        table: The name of the other table.
    """
    create = {name: described[name] for name in _OF_VECTOR_INDEX if name in described}
    names = [one["AttributeName"] for one in described.get("SearchSchema", ())]
    defined = [
        {"AttributeName": name, "AttributeType": types[name]} for name in names if name in types
    ]
    definitions = {"attribute_definitions": json.dumps(defined)} if defined else {}
    updates = json.dumps([{"Create": create}])
    options = {"table_name": table, **definitions, "vector_index_updates": updates}
    return _aws("dynamodb update-table", **options)


def backups(plan: str) -> str:
    """Which tables a backup plan selects."""
    return _aws("backup list-backup-selections", backup_plan_id=plan)


def export(table_arn: str) -> str:
    """Export a table as it is; it needs point-in-time recovery."""
    return _aws(
        "dynamodb export-table-to-point-in-time",
        table_arn=table_arn,
        s3_bucket="BUCKET",
        export_format="DYNAMODB_JSON",
    )


def _with(value: Any, old: Any, new: Any) -> Any:
    """With `new` wherever `old` stands."""
    if value == old:
        return new
    if isinstance(value, dict):
        return {name: _with(one, old, new) for name, one in value.items()}
    return [_with(one, old, new) for one in value] if isinstance(value, list) else value


def _aws(command: str, **options: str) -> str:
    """A command line of the AWS CLI; names and ARNs are others', so they are quoted."""
    words = [f"--{name.replace('_', '-')} {shlex.quote(to)}" for name, to in options.items()]
    return " ".join(["aws", command, *words])
