"""CloudFormation's custom resource, which guards tables with a key index and pairs that are being
re-keyed.

BuildKeyIndex creates streams, indexes, sentinels and the mappings of the keeper, so CloudFormation
does not know them. If the stack is deleted, or a table is removed from its list, this refuses while
the registry has a key index of the table, and otherwise removes the mappings. It never removes the
mappings of Replicate, which `keyhop rekey start` creates: while one follows a table of a pair that
is removed, the re-key is neither complete nor cancelled, and this refuses. When a deployment has
created metadata tables, it finally protects them from deletion. It always answers, because
CloudFormation would wait for 15 minutes otherwise.
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
from keyhop.key_index.registry import built_indexes
from keyhop.storage.s3 import s3_client
from keyhop.streams.event_source import Mappings

from handlers.telemetry import logger

PAUSE_SECONDS = 0.5
MARGIN_MILLISECONDS = 10_000

MADE = "keeper-mappings"
NOT_MADE = "not-made"
"""The physical id of a custom resource whose creation has failed. CloudFormation rolls it back with
a Delete for that id, which must not be refused."""

MISSING = "ResourceNotFoundException"
MOST_NAMED = 3
MOST_REASON = 2000
"""The maximum characters of a reason; an answer has up to 4,096 bytes (AWS documentation)."""


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Execute the request, and answer."""
    status, reason, physical_id = "SUCCESS", "", event.get("PhysicalResourceId") or MADE
    try:
        _obey(event, context)
    except Exception as error:
        logger.exception("refused")
        status, reason = "FAILED", _reason(error)
        physical_id = NOT_MADE if event["RequestType"] == "Create" else physical_id
    _answer(event, status, reason or f"See the log stream {context.log_stream_name}", physical_id)


def _reason(error: Exception) -> str:
    """Return an error's text for CloudFormation; for a denied request, the missing statement."""
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
        removed, kept_tables, metadata = tables, [], []
    else:
        before = _names(event, "OldResourceProperties")
        removed, kept_tables = [name for name in before if name not in tables], tables
    if removed:
        indexes = built_indexes(s3_client(), os.environ["KEYHOP_BUCKET"])
        check_none_stands([index for index in indexes if index[0] in removed])
        release(
            Mappings(boto3.client("lambda"), os.environ["KEYHOP_KEEPER"], ""), kept_tables, context
        )
    protect(metadata, True, context)


def check_none_is_rekeyed(event: Mapping[str, Any]) -> None:
    """Raise RuntimeError, with what to do first, if a removed pair is being re-keyed."""
    is_delete = event["RequestType"] == "Delete"
    properties = event.get("ResourceProperties" if is_delete else "OldResourceProperties") or {}
    kept_pairs = [] if is_delete else event["ResourceProperties"].get("Rekeyed", [])
    removed = [pair for pair in properties.get("Rekeyed", []) if pair not in kept_pairs]
    if not removed:
        return
    replicate = Mappings(boto3.client("lambda"), properties["Replicate"], "")
    followed = replicate.tables()
    for source, destination in removed:
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


def check_none_stands(indexes: Sequence[tuple[str, str]]) -> None:
    """Raise RuntimeError, with what to do first, if there are key indexes (see `built_indexes`)."""
    if not indexes:
        return
    names = ", ".join(table for table, _ in indexes[:MOST_NAMED])
    first, record = indexes[0]
    more = f" and {len(indexes) - MOST_NAMED} more" if len(indexes) > MOST_NAMED else ""
    raise RuntimeError(
        f"The key index of {names}{more} stands, with sentinels in the table: start "
        f"{os.environ['KEYHOP_REMOVAL']} with {json.dumps({'table': first})}, wait for "
        f"its end, and do this again. If the table is gone, or shall keep them without a keeper, "
        f"delete its record before: {record}"
    )


def release(mappings: Mappings, kept_tables: list[str], context: LambdaContext) -> None:
    """Remove all mappings except those of `kept_tables`; may raise TimeoutError."""
    _until(
        lambda: mappings.detach_all_but(kept_tables),
        "a mapping of the keeper cannot be removed: delete it in Lambda",
        context,
    )
    logger.info("released", kept=kept_tables)


def protect(tables: Sequence[str], is_on: bool, context: LambdaContext) -> None:
    """Turn the tables' deletion protection on or off; may raise TimeoutError or ClientError."""
    for table in tables:
        why_not = f"the protection of {table} from deletion cannot be changed"
        _until(partial(_is_protected, table, is_on), why_not, context)


def _is_protected(table: str, is_on: bool) -> bool:
    """Return whether the protection is on or off as requested; request the change if not."""
    client = boto3.client("dynamodb")
    try:
        description = client.describe_table(TableName=table)["Table"]
        if bool(description.get("DeletionProtectionEnabled")) == is_on:
            return True
        client.update_table(TableName=table, DeletionProtectionEnabled=is_on)
    except ClientError as error:
        if error_code(error) == MISSING and not is_on:
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
