"""CloudFormation's custom resource, which guards tables with a key index and pairs that are being
re-keyed.

BuildKeyIndex creates streams, indexes, sentinels and the mappings of the keeper, so CloudFormation
does not know them. If the stack is deleted, or a table is removed from its list, this refuses while
the registry has a key index of the table, and otherwise removes the mappings. It never removes the
mappings of Replicate, which `keyhop rekey start` creates: while one follows a table of a pair that
is removed, the re-key is neither complete nor cancelled, and this refuses. When a deployment has
created metadata tables, it protects them from deletion, as its last act. It always answers, because
CloudFormation would wait for a quarter of an hour otherwise.
"""

import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError
from keyhop.denied import Denied
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import BUSY
from keyhop.jobs.request import table_name
from keyhop.key_index.registry import BuiltIndex, built_indexes
from keyhop.storage.s3 import s3_client
from keyhop.streams.event_source import Mappings

from handlers.telemetry import make_logger

logger = make_logger()

PAUSE_SECONDS = 0.5
MARGIN_MILLISECONDS = 10_000

MADE = "keeper-mappings"
NOT_MADE = "not-made"
"""The physical id of a custom resource whose creation has failed: CloudFormation rolls it back by
a Delete with that id, which is to refuse nothing."""

MISSING = "ResourceNotFoundException"
MOST_NAMED = 3
MOST_REASON = 2000
"""Characters; an answer may have 4,096 bytes (AWS documentation)."""


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Do what the request says, and answer."""
    status, reason, made = "SUCCESS", "", event.get("PhysicalResourceId") or MADE
    try:
        _obey(event, context)
    except Exception as error:
        logger.exception("refused")
        status, reason = "FAILED", _reason(error)
        made = NOT_MADE if event["RequestType"] == "Create" else made
    _answer(event, status, reason or f"See the log stream {context.log_stream_name}", made)


def _reason(error: Exception) -> str:
    """Return what CloudFormation shows of an error; for a denied request, the statement that allows
    it.
    """
    text = str(error) or type(error).__name__
    denied = Denied.read(text) if isinstance(error, ClientError) else None
    return text if denied is None else f"Permission is missing: {denied}"


def _obey(event: dict[str, Any], context: LambdaContext) -> None:
    tables = _names(event, "ResourceProperties")
    metadata = _listed(event, "ResourceProperties", "Protected")
    if event["RequestType"] == "Delete" and event.get("PhysicalResourceId") == NOT_MADE:
        protect(metadata, False, context)
        return
    check_none_is_rekeyed(event)
    if event["RequestType"] == "Delete":
        going, kept, metadata = tables, [], []
    else:
        before = _names(event, "OldResourceProperties")
        going, kept = [name for name in before if name not in tables], tables
    if going:
        found = built_indexes(s3_client(), os.environ["KEYHOP_BUCKET"])
        check_none_stands([one for one in found if one.table in going])
        release(Mappings(boto3.client("lambda"), os.environ["KEYHOP_KEEPER"], ""), kept, context)
    protect(metadata, True, context)


def check_none_is_rekeyed(event: Mapping[str, Any]) -> None:
    """Raise RuntimeError, with what to do first, if a pair that this change removes is being
    re-keyed.
    """
    is_delete = event["RequestType"] == "Delete"
    properties = event.get("ResourceProperties" if is_delete else "OldResourceProperties") or {}
    kept = [] if is_delete else event["ResourceProperties"].get("Rekeyed", [])
    going = [pair for pair in properties.get("Rekeyed", []) if pair not in kept]
    if not going:
        return
    replicate = Mappings(boto3.client("lambda"), properties["Replicate"], "")
    followed = replicate.tables()
    for source, destination in going:
        if {source, destination} & followed:
            raise RuntimeError(
                f"{source} is being re-keyed as {destination}: this deployment's Replicate "
                "keeps one true to the other. Run `keyhop rekey complete` or, before the cutover, "
                f"`keyhop rekey cancel`, with {source} and {destination}; then do this again. If "
                "both tables are gone, delete the function's event source mappings in Lambda."
            )


def _names(event: dict[str, Any], properties: str) -> list[str]:
    """Return the names of the tables with keyIndex, which may be listed by their ARNs."""
    return [table_name(table) for table in _listed(event, properties, "Tables")]


def _listed(event: dict[str, Any], properties: str, name: str) -> list[str]:
    return list(event.get(properties, {}).get(name, ()))


def check_none_stands(found: Sequence[BuiltIndex]) -> None:
    """Raise RuntimeError, with what to do first, if there are key indexes."""
    if not found:
        return
    names = ", ".join(one.table for one in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise RuntimeError(
        f"The key index of {names}{more} stands, with sentinels in the table: start "
        f"{os.environ['KEYHOP_REMOVAL']} with {json.dumps({'table': found[0].table})}, wait for "
        f"its end, and do this again. If the table is gone, or shall keep them without a keeper, "
        f"delete its record before: {found[0].record}"
    )


def release(mappings: Mappings, kept: list[str], context: LambdaContext) -> None:
    """Remove all mappings but those to tables that are kept; raises TimeoutError."""
    _until(
        lambda: mappings.detach_all_but(kept),
        "a mapping of the keeper cannot be removed: delete it in Lambda",
        context,
    )
    logger.info("released", kept=kept)


def protect(tables: Sequence[str], wanted: bool, context: LambdaContext) -> None:
    """Protect tables from deletion, or no more; raises TimeoutError, and what DynamoDB refuses."""
    for table in tables:
        why_not = f"the protection of {table} from deletion cannot be changed"
        _until(partial(_is_protected, table, wanted), why_not, context)


def _is_protected(table: str, wanted: bool) -> bool:
    """Whether it is as wanted already; if not, that is begun."""
    client = boto3.client("dynamodb")
    try:
        told = client.describe_table(TableName=table)["Table"]
        if bool(told.get("DeletionProtectionEnabled")) == wanted:
            return True
        client.update_table(TableName=table, DeletionProtectionEnabled=wanted)
    except ClientError as error:
        if error_code(error) == MISSING and not wanted:
            return True
        if error_code(error) != BUSY:
            raise
    return False


def _until(is_done: Callable[[], bool], why_not: str, context: LambdaContext) -> None:
    while not is_done():
        if context.get_remaining_time_in_millis() < MARGIN_MILLISECONDS:
            raise TimeoutError(why_not)
        time.sleep(PAUSE_SECONDS)


def _answer(event: dict[str, Any], status: str, reason: str, physical_id: str) -> None:
    body = {
        "Status": status,
        "Reason": reason[:MOST_REASON],
        "PhysicalResourceId": physical_id,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    data = json.dumps(body).encode()
    # CloudFormation's own address, signed by it.
    request = urllib.request.Request(event["ResponseURL"], data=data, method="PUT")  # noqa: S310
    request.add_header("Content-Type", "")
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
        response.read()
