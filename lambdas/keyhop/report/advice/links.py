"""The commands that carry out a finding's steps. Pure."""

import json

from keyhop.report.advice.money import money, of_table, rewriting
from keyhop.report.facts import Facts, Tag
from keyhop.report.findings import Advice
from keyhop.report.forms import pattern_of

REKEY_EXISTS = False
"""Whether there is a `keyhop rekey`; without it the steps are given in words."""


def with_new_key(facts: Facts, patterns: tuple[str, ...], *steps: str) -> Advice:
    """Advise a table with another key, to which the data is copied.

    The new table costs as much a month. The copy reads and writes all data once.
    """
    table, today = facts.table, of_table(facts)
    cost = money(facts, today, today, rewriting(facts, table.bytes, table.items))
    if REKEY_EXISTS:
        return Advice(patterns, steps, f"keyhop rekey plan {table.name}", cost)
    by_hand = (
        "The key of a table cannot be changed: make a table with the new key, write to both, copy "
        "what there is, compare, then read from the new one.",
        "See what a key would do before that: keyhop report with --candidate.",
    )
    return Advice(patterns, (*steps, *by_hand), "", cost)


def naming(table: str, attribute: str, tag: Tag) -> str:
    """Return the command that writes the kind into the items of one tag, or "" without a prefix.

    The table must have no sort key, so that each item is a separate collection. The command changes
    no item that has the attribute already. The condition on keys includes the delimiter, and
    excludes keys with another one after it: ORDER alone is also the beginning of ORDERLINE#17, and
    ORDER_ that of ORDER_LINE_17.
    """
    if not tag.prefix:
        return ""
    names, values = json.dumps({"#kind": attribute}), json.dumps({":kind": tag.name.title()})
    return (
        f"keyhop each {table} --update 'SET #kind = if_not_exists(#kind, :kind)' "
        f"--names '{names}' --values '{values}' --where 'matches({pattern_of(tag.prefix)})' "
        "--dry-run"
    )
