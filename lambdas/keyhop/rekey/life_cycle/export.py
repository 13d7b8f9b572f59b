"""Export the source before the end of a re-key: request the export once, and wait for it."""

import uuid
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import StepResult, Table, ask
from keyhop.errors import AwsRefused, CannotStart
from keyhop.rekey.life_cycle.features import cause_code
from keyhop.rekey.side.figures import EXPORT
from keyhop.rekey.side.table import SideTable

NO_RECOVERY = "PointInTimeRecoveryUnavailableException"


def export_step(connection: Connection, side: SideTable, source: Table, bucket: str) -> StepResult:
    """Make the next step of the export. Raise AwsRefused if it has failed, or CannotStart if the
    source has no point-in-time recovery.
    """
    progress = side.told(EXPORT)
    if progress is None:
        side.tell(EXPORT, {"arn": "", "token": uuid.uuid4().hex})
        return StepResult(False, "asking for an export of the source")
    if not progress["arn"]:
        parameters = {
            "TableArn": source.arn,
            "S3Bucket": bucket,
            "S3Prefix": source.bare_name,
            "ExportFormat": "DYNAMODB_JSON",
            # A second request within eight hours is the same export (API Reference).
            "ClientToken": progress["token"],
        }
        answer = _asked(connection, source, parameters)
        side.tell(EXPORT, {**progress, "arn": answer["ExportDescription"]["ExportArn"]})
        return StepResult(False, "exporting the source")
    which = {"ExportArn": progress["arn"]}
    described = ask(connection, source.name, "describe_export", which)["ExportDescription"]
    status = described["ExportStatus"]
    if status == "FAILED":
        side.tell(EXPORT, None)
        why = described.get("FailureMessage", "")
        raise AwsRefused(f"The export of {source.bare_name!r} has failed: {why}")
    return StepResult(status == "COMPLETED", f"the export of the source is {status}")


def _asked(connection: Connection, source: Table, parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        return ask(connection, source.bare_name, "export_table_to_point_in_time", parameters)
    except AwsRefused as error:
        if cause_code(error) == NO_RECOVERY:
            raise CannotStart(
                f"Table {source.bare_name!r} has no point-in-time recovery, which an export is "
                "made from: turn it on, or complete without an export."
            ) from error
        raise
