"""Which kinds of items a table holds, recognised by their attributes. Pure."""

from collections.abc import Mapping

from keyhop.report.estimate import Estimate
from keyhop.report.facts import TableFacts

SAME_ENTITY = 0.5
BOOKKEEPING = frozenset(
    {
        "created",
        "createdat",
        "createdby",
        "entity",
        "entitytype",
        "expires",
        "expiresat",
        "id",
        "itemtype",
        "kind",
        "modified",
        "modifiedat",
        "ttl",
        "type",
        "updated",
        "updatedat",
        "updatedby",
        "version",
    }
)
"""Attributes that items of any kind have, in lower case and without _."""
RARE_SHAPE = 0.01


def kinds_of(table: TableFacts, shapes: Mapping[str, Estimate]) -> list[float] | None:
    """Return the low end of each kind's share of the items, or None if no shape was seen.

    Shapes that share attributes are one kind. Keys of the table and of indexes do not count, as all
    kinds have them.
    """
    keys = {"", table.partition, table.sort or ""}
    for index in table.indexes:
        keys |= {*index.partition.split(","), *(index.sort or "").split(",")}
    kinds: list[tuple[list[frozenset[str]], float]] = []
    for names, share in shapes.items():
        if share.value < RARE_SHAPE:
            continue
        attributes = frozenset(name.strip() for name in names.split(",")) - keys
        attributes = frozenset(
            name for name in attributes if name.lower().replace("_", "") not in BOOKKEEPING
        )
        alike = [kind for kind in kinds if any(_alike(attributes, shape) for shape in kind[0])]
        kinds = [kind for kind in kinds if kind not in alike]
        joined = [attributes, *(shape for kind in alike for shape in kind[0])]
        kinds.append((joined, share.low + sum(kind[1] for kind in alike)))
    return [low for _, low in kinds] or None


def _alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two shapes are of one kind.

    Items of one kind differ by optional attributes, so most attributes of either are in both.
    """
    if not first or not second:
        return not first and not second
    return (
        len(first & second) > SAME_ENTITY * len(first | second)
        or first <= second
        or second <= first
    )
