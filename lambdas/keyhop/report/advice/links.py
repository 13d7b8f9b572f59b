"""Where a finding's steps lead, and the commands for that. Pure."""

import json

from keyhop.report.advice.money import money, of_table, rewriting
from keyhop.report.facts import Facts
from keyhop.report.findings import Advice

REKEY_EXISTS = False
"""Whether there is a `keyhop rekey`; without it the steps say in words what is to be done."""


def with_new_key(facts: Facts, patterns: tuple[str, ...], *steps: str) -> Advice:
    """Of what only another key mends: a table with that key, to which the data goes. It costs as
    much a month; once, all is read and written.
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


def naming(table: str, attribute: str, tag: str) -> str:
    """The command that writes the kind into the items of one tag, of a table without a sort key:
    there each item is a collection.
    """
    names, values = json.dumps({"#kind": attribute}), json.dumps({":kind": tag.title()})
    return (
        f"keyhop each {table} --update 'SET #kind = :kind' --names '{names}' --values '{values}' "
        f"--where 'begins_with({tag})' --dry-run"
    )
