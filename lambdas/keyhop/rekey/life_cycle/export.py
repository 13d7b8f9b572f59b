"""A last export of the source: asked for once, and waited for."""

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
    """The next thing about it. Raises AwsRefused if it has failed, CannotStart without
    point-in-time recovery.
    """
    told = side.told(EXPORT)
    if told is None:
        side.tell(EXPORT, {"arn": "", "token": uuid.uuid4().hex})
        return StepResult(False, "asking for an export of the source")
    if not told["arn"]:
        asked = {
            "TableArn": source.arn,
            "S3Bucket": bucket,
            "S3Prefix": source.bare_name,
            "ExportFormat": "DYNAMODB_JSON",
            # Asked for again within eight hours it is the same export (API Reference).
            "ClientToken": told["token"],
        }
        answer = _asked(connection, source, asked)
        side.tell(EXPORT, {**told, "arn": answer["ExportDescription"]["ExportArn"]})
        return StepResult(False, "exporting the source")
    which = {"ExportArn": told["arn"]}
    described = ask(connection, source.name, "describe_export", which)["ExportDescription"]
    status = described["ExportStatus"]
    if status == "FAILED":
        side.tell(EXPORT, None)
        why = described.get("FailureMessage", "")
        raise AwsRefused(f"The export of {source.bare_name!r} has failed: {why}")
    return StepResult(status == "COMPLETED", f"the export of the source is {status}")


def _asked(connection: Connection, source: Table, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return ask(connection, source.bare_name, "export_table_to_point_in_time", asked)
    except AwsRefused as error:
        if cause_code(error) == NO_RECOVERY:
            raise CannotStart(
                f"Table {source.bare_name!r} has no point-in-time recovery, which an export is "
                "made from: turn it on, or complete without an export."
            ) from error
        raise
