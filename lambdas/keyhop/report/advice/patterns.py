"""The key patterns by number; docs/key-patterns.md explains each under the anchor #p1 to #p20."""

from typing import Final

PAGE = "docs/key-patterns.md"

PATTERNS: Final = {
    "P1": "Type tags in keys",
    "P2": "Unique values by constraint items",
    "P3": "Sparse index",
    "P4": "Time to live, and a filter when reading",
    "P5": "Bounded collections",
    "P6": "Adjacency list",
    "P7": "One table, overloaded index keys",
    "P8": "Versions of an item",
    "P9": "Unique ids that sort by time",
    "P10": "Buckets of time",
    "P11": "Padded numbers",
    "P12": "A key for each question",
    "P13": "Large values elsewhere",
    "P14": "Composite sort key",
    "P15": "Lean indexes",
    "P16": "Status in a bucketed index key",
    "P17": "Write sharding",
    "P18": "Copies of a key that is read much",
    "P19": "Aggregates from the stream",
    "P20": "Sharded counter",
}


def link(pattern: str) -> str:
    """Return the link to a pattern's description, such as `docs/key-patterns.md#p1` for P1."""
    return f"{PAGE}#{pattern.lower()}"
