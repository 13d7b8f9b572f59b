"""QuerySharded: reads all shards of a key as one, for callers in any language.

{"table": "Audit", "key": "/f.txt", "descending": true, "limit": 50} is answered by {"items": [...],
"count": 50, "pageToken": "..."}. The items are in the order of their sort key. The page token
requests the next page, together with the same input; it is null at the end. An answer of Lambda has
at most 6 MB, so a page may end before `limit`: only pageToken shows whether more items follow.

Numbers are plain JSON; a number that a double cannot hold becomes the nearest one that it can.
Binaries are base64 text, sets are arrays. "typed": true answers in DynamoDB's own JSON instead,
which is exact (item_json.py).
"""

import json
from collections.abc import Iterator
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.sharding.table import ShardedTable

from handlers.item_json import item_json
from handlers.sharded_tables import at_work
from handlers.sharding_requests import QueryRequest
from handlers.telemetry import function, make_logger

logger = make_logger()

ANSWER_BYTES = 5_900_000
"""The maximum size of items; Lambda refuses an answer above 6,291,556 bytes (AWS documentation)."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return a page of the items of a key."""
    request = QueryRequest.from_event(event)
    with at_work(request.table, context) as table:
        page = query(table, request)
    logger.info("read", table=request.table, items=page["count"], more=bool(page["pageToken"]))
    return page


def query(table: ShardedTable, request: QueryRequest) -> dict[str, Any]:
    """Return a page of items, limited by the request and by the size of an answer."""
    stored = table.query(
        key=request.key,
        between=request.between,
        descending=request.descending,
        limit=request.limit + 1,  # so that a further item shows that more follow
        consistent=request.consistent,
        page_token=request.page_token,
    )
    items, last = take(stored, request.limit, request.typed)
    token = None
    if last is not None:
        where = {"between": request.between, "descending": request.descending}
        token = table.page_token(request.key, last[table.schema.sort.name], **where)
    return {"items": items, "count": len(items), "pageToken": token}


def take(
    stored: Iterator[dict[str, Any]], limit: int, typed: bool
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return items as JSON, and the last one if more follow. The first always fits.

    The size is measured with escapes for all characters but ASCII, so it is never too low.
    """
    items: list[dict[str, Any]] = []
    last: dict[str, Any] | None = None
    size = 0
    for item in stored:
        encoded = item_json(item, typed)
        size += len(json.dumps(encoded)) + len(", ")
        if len(items) == limit or (items and size > ANSWER_BYTES):
            return items, last
        items.append(encoded)
        last = item
    return items, None
