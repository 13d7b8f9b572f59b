"""The sources of the settings of a deployment: the file keyhop.json, and the context of the CDK,
which takes precedence.

The tables have no default: otherwise a `cdk deploy` that somebody runs without them would change a
deployment with other tables to the default.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhop.checks import check_characters

from .config_values import ConfigError
from .paths import ROOT

FILE = "keyhop.json"
EXAMPLE = "keyhop.example.json"
NAMING = "settings"
"""The context field that names another file; if it is empty, no file is read."""


def settings_of(context: Mapping[str, Any], folder: Path = ROOT) -> dict[str, Any]:
    """Return the settings by name. The context overrides the file. May raise ConfigError."""
    overrides = {name: value for name, value in context.items() if name != NAMING}
    name = context.get(NAMING, FILE)
    in_file = _read(folder / name, is_asked_for=NAMING in context) if name else {}
    settings = {**in_file, **overrides}
    if not settings.get("tables"):
        raise ConfigError(
            f"Nothing says which tables this deployment may touch: copy {EXAMPLE} to {FILE} and "
            "write them there, or give them by -c tables=Orders."
        )
    return settings


def _read(path: Path, is_asked_for: bool) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        check_characters(content)
    except FileNotFoundError:
        if not is_asked_for:
            return {}
        raise ConfigError(f"There is no file {path.name}, which {NAMING} names.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path.name} cannot be read as JSON: {error}.") from None
    if not isinstance(content, dict):
        raise ConfigError(f'{path.name} must be an object, as {{"tables": ["Orders"]}}.')
    return content
