"""WriteSharded: puts items into a sharded table, for callers in any language.

{"table": "Audit", "items": [{"path": "/f.txt", "at": "2026-11-21T09:00:00Z"}]} is answered by
{"written": 1, "failed": [], "results": [{"index": 0, "status": "written"}]}. Each item is in
`results`; one that was not written is in `failed` as well, with an error's name and a sentence:
{"index", "error", "message"}. Such an item may be sent again; after Unreachable or OutOfTime it may
have been written all the same.

Items are plain JSON, or DynamoDB's own with "typed": true: binaries, sets and numbers of more
digits than a double holds need that (item_json.py).
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

MOST_TOLD = 300
"""Characters of an item's sentence: an answer of Lambda has 6 MB at most."""

Failures = dict[int, tuple[str, str]]
"""Of each item that was not written, by its index: an error's name, and a sentence."""


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
    """Write all items that can be read; returns what has failed."""
    failures: Failures = {}
    places: list[int] = []
    items: list[dict[str, Any]] = []
    for index, given in enumerate(request.items):
        try:
            items.append(item_of(given, request.typed))
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
            {"index": index, "error": error, "message": message[:MOST_TOLD]}
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
