"""The parts that count, named for the programs that read them next.

A worker that was given up may still upload a part when the run is over, beside the others. Whoever
reads by prefix would count its keys twice; so readers get a list, made from the commits:

parts.json       a JSON array, the items of a distributed map: {"bucket", "key", "keys", "size"}
links/parts.txt  one s3:// address a line: what Hive's SymlinkTextInputFormat reads (Athena)
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from keyhop.storage.s3 import Bucket

PARTS = "parts.json"
LINKS = "links/parts.txt"


def write_part_index(store: Bucket, parts: Iterable[Mapping[str, Any]]) -> None:
    """Write both lists of a manifest's parts; they are the same whenever they are written again."""
    named = sorted(parts, key=lambda part: part["name"])
    items = [
        {
            "bucket": store.bucket,
            "key": store.prefix + part["name"],
            "keys": part["keys"],
            "size": part["size"],
        }
        for part in named
    ]
    store.replace(PARTS, json.dumps(items).encode())
    store.replace(LINKS, "".join(f"{store.url(part['name'])}\n" for part in named).encode())
