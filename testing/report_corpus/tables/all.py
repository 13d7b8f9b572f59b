"""All tables of a part of the corpus, in the order of their modules."""

from functools import cache
from importlib import import_module

from testing.report_corpus.case import ALL, Case

OWN = "own"
_OWN = ("clean", "keys", "sizes", "indexes", "traffic", "requests", "flights", "sampled")
PARTS = {
    OWN: tuple(f"tables.{name}" for name in _OWN),
    "public": ("others.public", "others.public_more"),
    "fifth": tuple(f"others.fifth_{name}" for name in ("items", "indexes", "traffic", "calls")),
}
"""The modules of each part: the project's own tables, and those that others have declared.

Four earlier parts were removed when the fifth replaced them; only their tables with published
schemas remain, as the part "public".
"""


def every(part: str = OWN) -> list[Case]:
    """Return the tables of a part."""
    return [case for module in PARTS[part] for case in _declared(module)]


@cache
def _declared(module: str) -> list[Case]:
    before = {*ALL}
    import_module(f"testing.report_corpus.{module}")
    return [case for name, case in ALL.items() if name not in before]
