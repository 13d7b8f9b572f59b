"""Tests that docs/reference/command.md names all flags of the command, and no others."""

import re

import click
import pytest
from keyhop.cli.main import command

from testing.servers import ROOT

COMMAND_PAGE = (ROOT / "docs" / "reference" / "command.md").read_text()


def options(group: click.Command) -> set[str]:
    """Return all names of the flags of a command and of its subcommands."""
    names = {
        name
        for option in group.params
        if isinstance(option, click.Option) and not option.hidden
        for name in option.opts
    }
    return names.union(*(options(child) for child in getattr(group, "commands", {}).values()))


def test_the_page_names_each_flag() -> None:
    assert {flag for flag in options(command) if f"`{flag}" not in COMMAND_PAGE} == set()


def test_the_tables_have_only_existing_flags() -> None:
    rows = "".join(re.findall(r"^\| (`.*?) \|", COMMAND_PAGE, re.MULTILINE))
    assert set(re.findall(r"`(--?[a-z0-9-]+)", rows)) <= options(command)


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (("keys",), "## Flags of `keyhop keys TABLE`"),
        (("each",), "## Flags of `keyhop each TABLE`"),
        (("index", "build"), "## Flags of `keyhop index ACTION TABLE`"),
        (("index", "verify"), "## Flags of `keyhop index ACTION TABLE`"),
        (("index", "remove"), "## Flags of `keyhop index ACTION TABLE`"),
        (("index", "redrive"), "## Flags of `keyhop index ACTION TABLE`"),
        (("shards", "add"), "## Flags of `keyhop shards ACTION TABLE [KEY]`"),
        (("shards", "drain"), "## Flags of `keyhop shards ACTION TABLE [KEY]`"),
        (("runs", "fetch"), "## Flags of `keyhop runs ACTION`"),
        *(
            (("rekey", name), "## Flags of `keyhop rekey ACTION TABLE`")
            for name in ("plan", "create", "start", "verify", "cutover", "rollback")
        ),
        *(
            (("rekey", name), "## Flags of `keyhop rekey ACTION TABLE`")
            for name in ("complete", "cancel", "throttle", "shadow")
        ),
        (("report",), "## Flags of `keyhop report TABLE`"),
    ],
)
def test_the_table_of_a_command_has_its_flags(names: tuple[str, ...], title: str) -> None:
    """A separate table has the flags of every command."""
    group: click.Command = command
    for name in names:
        assert isinstance(group, click.Group)
        group = group.commands[name]
    common_table, _, _ = COMMAND_PAGE.partition("## Flags of every command")[2].partition("\n## ")
    table, _, _ = COMMAND_PAGE.partition(title)[2].partition("\n## ")
    assert {flag for flag in options(group) if f"`{flag}" not in common_table + table} == set()
