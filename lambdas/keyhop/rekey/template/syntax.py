"""Parse texts with fields. Pure.

    template = { literal | "{" path [":" S|N|B] { "|" filter [":" argument] } [ "?" default ] "}" }

`{{` and `}}` mean one brace each; a field may also begin with `${`. A path is the name of an
attribute or of a variable, and leads into maps and lists: `address.city`, `lines[0].sku`. Spaces
around a path, a type, a filter and a default are ignored.
"""

import re
from dataclasses import dataclass

from keyhop.dynamodb.values import KeyType

_PATH = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[0-9]+\])*")
_STEP = re.compile(r"\[([0-9]+)\]|[^.\[\]]+")
_TYPED = re.compile(r"(.+?)\s*:\s*([A-Z]\w*)", re.DOTALL)
_TYPES: dict[str, KeyType] = {"S": "S", "N": "N", "B": "B"}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a text, with a text that replaces a missing value. `path` begins with an attribute
    or variable, and filters have arguments, which may be empty.
    """

    path: tuple[str | int, ...]
    type: KeyType | None = None
    filters: tuple[tuple[str, str], ...] = ()
    default: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the attribute or variable."""
        return str(self.path[0])

    @property
    def shown(self) -> str:
        """Return the path as it is written."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path[1:])
        return self.name + "".join(steps)


def parsed(text: str) -> list[str | Field]:
    """Return literals (never empty, never adjacent) and fields, in order, or raise ValueError."""
    parts: list[str | Field] = []
    literal, at = "", 0
    while at < len(text):
        if text.startswith(("{{", "}}"), at):
            literal, at = literal + text[at], at + 2
        elif text[at] == "}":
            raise ValueError("a '}' closes nothing; for the character itself write '}}'")
        elif text[at] == "{" or (text.startswith("${", at) and not text.startswith("${{", at)):
            begin = text.index("{", at) + 1
            end = text.find("}", begin)
            if end < 0:
                raise ValueError("a '{' is not closed; for the character itself write '{{'")
            parts += [literal] if literal else []
            parts.append(_field(text[begin:end]))
            literal, at = "", end + 1
        else:
            literal, at = literal + text[at], at + 1
    return parts + ([literal] if literal else [])


def _field(inside: str) -> Field:
    rest, asks, default = inside.partition("?")
    path, *filters = (part.strip() for part in rest.split("|"))
    typed = _TYPED.fullmatch(path)
    if typed:
        path = typed[1]
        if typed[2] not in _TYPES:
            raise ValueError(f"{typed[2]!r} is no type of a key: {{{inside}}} takes S, N or B")
    if not _PATH.fullmatch(path):
        raise ValueError(f"{{{inside}}} does not begin with the name of an attribute")
    steps = [int(s[1]) if s[1] else s[0] for s in _STEP.finditer(path)]
    if any(isinstance(step, str) and step != step.strip() for step in steps):
        raise ValueError(f"{{{inside}}} has a space beside a '.' or a '[': write it without")
    return Field(
        tuple(steps),
        _TYPES[typed[2]] if typed else None,
        tuple((n.strip(), a.strip()) for n, _, a in (f.partition(":") for f in filters)),
        default.strip() if asks else None,
    )
