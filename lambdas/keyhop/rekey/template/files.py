"""A template's file, and the file with functions that it may name: read, and nothing executed."""

import json
from pathlib import Path
from typing import Any

from keyhop.checks import check_characters
from keyhop.errors import CannotStart


def read(path: Path) -> tuple[dict[str, Any], str]:
    """The template as a JSON object, and the text of its functions' file (empty if it names none),
    which lies beside it. JSON if it is called .json, else YAML. Raises CannotStart.
    """
    text = text_of(path)
    try:
        given = json.loads(text) if path.suffix == ".json" else _of_yaml(text)
        check_characters(given)
    except ValueError as error:
        raise CannotStart(f"{str(path)!r} is no template: {error}.") from error
    except RecursionError as error:
        raise CannotStart(f"{str(path)!r} is no template: it is nested too deeply.") from error
    if not isinstance(given, dict):
        raise CannotStart(f"{str(path)!r} is no template: it holds no object with items.")
    file, _, _ = str(given.get("transform", "")).partition(":")
    if not file:
        return given, ""
    if Path(file).name != file:
        raise CannotStart(f"The file {file!r} of the transform must lie beside the template.")
    return given, text_of(path.parent / file)


def _of_yaml(text: str) -> Any:
    import yaml  # no part of the functions' layer: there a template comes from the plan

    try:
        given = yaml.safe_load(text)
        text = json.dumps(given, allow_nan=False)  # as the plan keeps it: no dates, no circles
    except (yaml.YAMLError, TypeError) as error:
        line = getattr(error, "problem_mark", None)
        where = f" in line {line.line + 1}" if line else ""
        raise ValueError(f"it is no YAML that JSON can hold{where}") from error
    _check_keys(given)
    return json.loads(text)


def _check_keys(given: Any) -> None:
    """YAML takes words as No and on for false and true, of which JSON would make texts again."""
    if isinstance(given, dict):
        if not all(isinstance(name, str) for name in given):
            raise ValueError("a name in it is no text for YAML: put No, on and numbers in quotes")
        given = list(given.values())
    for one in given if isinstance(given, list) else ():
        _check_keys(one)


def text_of(path: Path) -> str:
    """Of a file; raises CannotStart."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"The file {str(path)!r} cannot be read: {error}.") from error
