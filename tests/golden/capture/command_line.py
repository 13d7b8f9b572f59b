"""Capture the options and the exit statuses of the command."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click
from keyhop.cli.main import command

from testing.databases import Database, keyhop
from tests.golden.capture.contexts import COMMANDS
from tests.golden.capture.places import empty_environment, stand_in
from tests.golden.normal import text


def options() -> dict[str, Any]:
    """Return the options and arguments of each command, independent of the parsing library."""
    return {name: dict(sorted(parameters)) for name, parameters in options_of(command, "keyhop")}


def options_of(group: click.Command, name: str) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield the parameters of a command and its subcommands; only this function uses click."""
    parameters = []
    for parameter in group.params:
        info = parameter.to_info_dict()
        names = parameter.opts if isinstance(parameter, click.Option) else []
        description = {
            "options": sorted(names),
            "default": info["default"],
            "choices": info["type"].get("choices"),
            "required": parameter.required,
            "is_flag": info.get("is_flag", False),
        }
        parameters.append((max(names, key=len, default=parameter.name), description))
    yield name, parameters
    for child, sub in getattr(group, "commands", {}).items():
        yield from options_of(sub, f"{name} {child}")


def exit_statuses() -> dict[str, Any]:
    """Return the exit status of each command line, and the sentences of Keyhop's own checks."""
    outcomes: dict[str, Any] = {}
    with empty_environment() as (folder, _), stand_in() as database:
        (folder / "file").touch()
        options = ("--segments", "4", "--threads", "1")
        database.keys("Orders", "--output", f"{folder}/done", *options)
        database.keys("Orders", "--output", f"{folder}/begun", "--max-read-units", "13", *options)
        places = {"{url}": database.url, "{place}": str(folder)}
        for kind, cases in COMMANDS.items():
            for name, arguments in cases.items():
                filled_in = [
                    re.sub(r"\{\w+\}", lambda match: places[match[0]], argument)
                    for argument in arguments
                ]
                outcomes[f"{kind}: {name}"] = outcome(kind, filled_in, places)
        outcomes["told: stdout is closed"] = outcome_with_closed_stdout(database)
    return outcomes


def outcome(kind: str, arguments: list[str], places: Mapping[str, str]) -> dict[str, Any]:
    """Run a command line, and return its outcome without the sentences of click."""
    result = keyhop(*arguments)
    report: dict[str, Any] = {"status": result.status}
    if kind == "told":
        lines = [line for line in result.err.splitlines() if line.startswith("keyhop: ")]
        sentences = "\n".join(lines).replace(places["{place}"], "<place>")
        report["says"] = text(sentences.replace(places["{url}"], "<endpoint>"))
    if kind == "done":
        report["prints"] = bool(result.out)
    return report


def outcome_with_closed_stdout(database: Database) -> dict[str, Any]:
    """Run the command with a closed standard output."""
    command = f"'{sys.executable}' -m keyhop keys Orders --endpoint-url {database.url} >&-"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return {"status": result.returncode, "says": result.stderr.strip()}
