"""The inputs of the captures: contexts of deployments, command lines and source folders."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
FILES = HERE / "files"
ROOT = HERE.parents[1]
CONTEXTS: dict[str, Any] = json.loads((HERE / "contexts.json").read_text())
COMMANDS: dict[str, Any] = json.loads((HERE / "commands.json").read_text())
SOURCES = ("lambdas", "infra", "local")
