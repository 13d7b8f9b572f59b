"""The list of all logical keys of a metadata table."""

import logging
from collections.abc import Iterator
from typing import Any

from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import BrokenPromise
from keyhop.sharding.key.shards import Shards, from_item
from keyhop.sharding.store.requests import Requests
from keyhop.sharding.store.table_item import is_claim, total_key
from keyhop.sharding.store.traffic import traffic_of

logger = logging.getLogger(__name__)


def all_keys(
    requests: Requests, table: str, partition: KeyAttribute
) -> Iterator[tuple[TypedValue, Shards, dict[int, float] | None]]:
    """Yield a metadata table's logical keys, with metadata and traffic, by a Scan."""
    more: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        page = requests.call("scan", **more)
        for item in page["Items"]:
            key = item[partition.name]
            if key == total_key(partition.type) or is_claim(key):
                continue
            try:
                yield key, from_item(item), traffic_of(item)
            except BrokenPromise as error:  # one invalid item must not hide the others
                logger.warning("left out: %s", error)
        if "LastEvaluatedKey" not in page:
            return
        more["ExclusiveStartKey"] = page["LastEvaluatedKey"]
