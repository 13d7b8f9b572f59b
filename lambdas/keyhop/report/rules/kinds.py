"""Which kinds of items a table holds, by the attributes that they have. Pure."""

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
"""Attributes that items of any kind have; lower case, without _."""
RARE_SHAPE = 0.01


def kinds_of(table: TableFacts, shapes: Mapping[str, Estimate]) -> list[float] | None:
    """How much of the items each kind is, at least; shapes that share attributes are one kind.

    None if no shape was seen. Keys of table and indexes tell nothing, as all kinds have them.
    """
    keys = {"", table.partition, table.sort or ""}
    for index in table.indexes:
        keys |= {*index.partition.split(","), *(index.sort or "").split(",")}
    kinds: list[tuple[list[frozenset[str]], float]] = []
    for names, share in shapes.items():
        if share.value < RARE_SHAPE:
            continue
        own = frozenset(name.strip() for name in names.split(",")) - keys
        own = frozenset(one for one in own if one.lower().replace("_", "") not in BOOKKEEPING)
        alike = [kind for kind in kinds if any(_alike(own, one) for one in kind[0])]
        kinds = [kind for kind in kinds if kind not in alike]
        joined = [own, *(one for kind in alike for one in kind[0])]
        kinds.append((joined, share.low + sum(kind[1] for kind in alike)))
    return [low for _, low in kinds] or None


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Items of one kind differ by options: most of what either has, both have."""
    if not one or not other:
        return not one and not other
    return len(one & other) > SAME_ENTITY * len(one | other) or one <= other or other <= one
