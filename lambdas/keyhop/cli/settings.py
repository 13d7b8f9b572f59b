"""Settings that take the place of flags: environment variables, and a table in pyproject.toml.

    KEYHOP_REGION=eu-west-1

    [tool.keyhop]
    region = "eu-west-1"

A flag counts before a variable, and a variable before the file. There is no setting for an
endpoint, a role or an answer, because a file that came with another person's code must not choose
these.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keyhop.errors import CannotStart
from keyhop.wording import did_you_mean

TEXTS = ("stack", "region", "profile")
RATES = ("max-read-rate", "max-write-rate")
LEAST_RATE = 0.01
"""One page of 0.5 read units every 50 seconds."""

FILE = "pyproject.toml"


class Setting(NamedTuple):
    """The value of a setting, and the variable or the file that it came from."""

    value: Any
    source: str


def settings() -> dict[str, Setting]:
    """Return the settings by the names of their options: max_read_rate, for example.

    Raises:
        CannotStart: The file or one of its settings is wrong.
    """
    values = _settings_of_file()
    for name in (*TEXTS, *RATES):
        variable = f"KEYHOP_{_option(name).upper()}"
        if text := os.environ.get(variable):
            value = _number(text) if name in RATES else text
            _check(variable, name, value)
            values[_option(name)] = Setting(value, variable)
    return values


def sources_text(used: Mapping[str, str]) -> str:
    """Return a sentence about the settings with these names, by their sources."""
    parts = (f"{name.replace('_', ' ')} from {source}" for name, source in used.items())
    return f"settings: {', '.join(parts)}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _option(name: str) -> str:
    return name.replace("-", "_")


def _settings_of_file() -> dict[str, Setting]:
    """Return the settings of the nearest pyproject.toml at or above the working directory."""
    folder = Path.cwd()
    path = next(filter(Path.is_file, (each / FILE for each in (folder, *folder.parents))), None)
    if path is None or b"tool.keyhop" not in (content := path.read_bytes()):
        return {}
    import tomllib  # only for commands that need it, because it takes milliseconds to load

    try:
        table = tomllib.loads(content.decode()).get("tool", {}).get("keyhop", {})
    except ValueError as error:
        raise CannotStart(f"{path} is not valid TOML: {error}.") from error
    for name, value in table.items():
        _check(f"{name} in [tool.keyhop] of {path}", name, value)
    return {_option(name): Setting(value, str(path)) for name, value in table.items()}


def _check(where: str, name: str, value: Any) -> None:
    if name not in (*TEXTS, *RATES):
        near = did_you_mean(name, (*TEXTS, *RATES))
        names = f"{', '.join((*TEXTS, *RATES[:-1]))} and {RATES[-1]}"
        raise CannotStart(f"{where} is not a setting: the settings are {names}.{near}")
    if name in TEXTS and not (isinstance(value, str) and value):
        raise CannotStart(f'{where} must be a text in quotes, such as {name} = "...".')
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in RATES and not (is_number and LEAST_RATE <= value < float("inf")):
        raise CannotStart(f"{where} must be a number of units a second, {LEAST_RATE:g} or more.")
