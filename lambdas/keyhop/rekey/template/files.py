"""Read a template's file, and the file with functions that it may name, without executing them."""

import json
from pathlib import Path
from typing import Any

from keyhop.checks import check_characters
from keyhop.errors import CannotStart


def read(path: Path) -> tuple[dict[str, Any], str]:
    """Return the template as a JSON object, and the text of the functions' file beside it, if any.
    The suffix .json means JSON, any other YAML. Raise CannotStart for a file that is not valid.
    """
    text = text_of(path)
    try:
        content = json.loads(text) if path.suffix == ".json" else _of_yaml(text)
        check_characters(content)
    except ValueError as error:
        raise CannotStart(f"{str(path)!r} is no template: {error}.") from error
    except RecursionError as error:
        raise CannotStart(f"{str(path)!r} is no template: it is nested too deeply.") from error
    if not isinstance(content, dict):
        raise CannotStart(f"{str(path)!r} is no template: it holds no object with items.")
    file, _, _ = str(content.get("transform", "")).partition(":")
    if not file:
        return content, ""
    if Path(file).name != file:
        raise CannotStart(f"The file {file!r} of the transform must lie beside the template.")
    return content, text_of(path.parent / file)


def _of_yaml(text: str) -> Any:
    import yaml  # not in the functions' layer, where a template comes from the plan

    try:
        content = yaml.safe_load(text)
        text = json.dumps(content, allow_nan=False)  # as in the plan: no dates, no cycles
    except (yaml.YAMLError, TypeError) as error:
        line = getattr(error, "problem_mark", None)
        if "'\\t'" in (getattr(error, "problem", None) or "") and line:
            raise ValueError(
                f"line {line.line + 1} has a tab where YAML expects spaces: indent with spaces"
            ) from error
        where = f" in line {line.line + 1}" if line else ""
        raise ValueError(f"it is no YAML that JSON can hold{where}") from error
    _check_keys(content)
    return json.loads(text)


def _check_keys(content: Any) -> None:
    """Refuse names that are not texts: YAML reads words such as No and on as booleans."""
    if isinstance(content, dict):
        if not all(isinstance(name, str) for name in content):
            raise ValueError("a name in it is no text for YAML: put No, on and numbers in quotes")
        content = list(content.values())
    for element in content if isinstance(content, list) else ():
        _check_keys(element)


def text_of(path: Path) -> str:
    """Return the text of a file, or raise CannotStart."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"The file {str(path)!r} cannot be read: {error}.") from error
