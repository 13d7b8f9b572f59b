"""All tables, in the order of their modules."""

from importlib import import_module

from testing.report_corpus.case import ALL, Case

MODULES = ("clean", "keys", "sizes", "indexes", "traffic", "requests", "flights", "sampled")


def every() -> list[Case]:
    for name in MODULES:
        import_module(f"testing.report_corpus.tables.{name}")
    return list(ALL.values())
