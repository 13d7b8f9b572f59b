"""docs/reference/command.md names what there is to be given, and nothing else."""

import re

import click
import pytest
from keyhop.cli.main import command

from testing.servers import ROOT

PAGE = (ROOT / "docs" / "reference" / "command.md").read_text()


def options(group: click.Command) -> set[str]:
    """The flags of a command and of those below it, by all their names."""
    found = {
        name
        for one in group.params
        if isinstance(one, click.Option) and not one.hidden
        for name in one.opts
    }
    return found.union(*(options(child) for child in getattr(group, "commands", {}).values()))


def test_each_flag_is_in_the_page() -> None:
    assert {one for one in options(command) if f"`{one}" not in PAGE} == set()


def test_no_other_flag_is_in_a_table() -> None:
    rows = "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))
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
def test_each_command_finds_its_flags_in_its_table(names: tuple[str, ...], title: str) -> None:
    """Beside those of every command."""
    here: click.Command = command
    for name in names:
        assert isinstance(here, click.Group)
        here = here.commands[name]
    of_all, _, _ = PAGE.partition("## Flags of every command")[2].partition("\n## ")
    own, _, _ = PAGE.partition(title)[2].partition("\n## ")
    assert {one for one in options(here) if f"`{one}" not in of_all + own} == set()
