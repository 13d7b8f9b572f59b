"""WriteSharded: puts items into a sharded table, for callers in any language.

{"table": "Audit", "items": [{"path": "/f.txt", "at": "2026-11-21T09:00:00Z"}]} is answered by
{"written": 1, "failed": [], "results": [{"index": 0, "status": "written"}]}. Each item is in
`results`. An item that was not written is also in `failed`, with an error's name and a message:
{"index", "error", "message"}. A caller may send such an item again. After Unreachable or OutOfTime
it may have been written after all.

Items are plain JSON, or DynamoDB's JSON with "typed": true, which binaries, sets and numbers with
more digits than a double need (item_json.py).
"""

from collections import Counter
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.dynamodb.refusals import error_code, explained
from keyhop.errors import KeyhopError
from keyhop.sharding.table import ShardedTable

from handlers.item_json import InvalidItem, item_of
from handlers.sharded_tables import OutOfTime, at_work
from handlers.sharding_requests import WriteRequest
from handlers.telemetry import function, make_logger, report

logger = make_logger()

MESSAGE_CHARACTERS = 300
"""The maximum characters of an item's message, as an answer of Lambda has up to 6 MB."""

Failures = dict[int, tuple[str, str]]
"""The name of an error and a message for each item that was not written, by its index."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Write items into a table, and return the result of each item."""
    request = WriteRequest.from_event(event)
    with at_work(request.table, context, writes=True) as table:
        failures = write(table, request)
    written = len(request.items) - len(failures)
    report(request.table, ItemsWritten=written, ItemsFailed=len(failures))
    causes = Counter(error for error, _ in failures.values())
    logger.info("written", table=request.table, items=written, failed=dict(causes))
    return answer(len(request.items), failures)


def write(table: ShardedTable, request: WriteRequest) -> Failures:
    """Write all valid items, and return the failures."""
    failures: Failures = {}
    places: list[int] = []
    items: list[dict[str, Any]] = []
    for index, source in enumerate(request.items):
        try:
            items.append(item_of(source, request.typed))
            places.append(index)
        except InvalidItem as error:
            failures[index] = ("InvalidItem", f"The item cannot be written: {error}.")
    for place, _, cause in table.batch_write(items).failed:
        failures[places[place]] = _explained(cause, table)
    return failures


def answer(items: int, failures: Failures) -> dict[str, Any]:
    """Return the results of this number of items."""
    return {
        "written": items - len(failures),
        "failed": [
            {"index": index, "error": error, "message": message[:MESSAGE_CHARACTERS]}
            for index, (error, message) in sorted(failures.items())
        ],
        "results": [
            {"index": index, "status": "failed" if index in failures else "written"}
            for index in range(items)
        ],
    }


def _explained(error: Exception, table: ShardedTable) -> tuple[str, str]:
    if isinstance(error, KeyhopError | OutOfTime):
        return type(error).__name__, str(error)
    if not isinstance(error, ClientError | BotoCoreError):
        return "InvalidItem", f"The item cannot be written: {error}."
    refusal = explained(error, table.endpoint, table.name)
    return error_code(error) or type(refusal).__name__, str(refusal)
