"""HTML and SVG as text, in which a name that a user chose can only become text.

Elements are made by `tag`, which escapes each plain string among its children and attributes. The
output is XML as well as HTML.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

EMPTY: Final = frozenset({"meta", "br", "hr"})
"""The HTML elements without an end tag."""


class Markup(str):
    """Text that is already markup."""

    __slots__ = ()


Child = str | Iterable[str]


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element.

    `class_` is class, `view_box` is viewBox, and other names have - for _. Attributes that are None
    are omitted.
    """
    head = "".join(
        f' {_name(key)}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(*children)
    if not inner and name in EMPTY:
        return Markup(f"<{name}{head}/>")
    return Markup(f"<{name}{head}>{inner}</{name}>")


def join(*children: Child) -> Markup:
    """Return the children one after the other."""
    return Markup(
        "".join(
            _text(child) if isinstance(child, str) else "".join(map(_text, child))
            for child in children
        )
    )


def between(separator: str, children: Iterable[str]) -> Markup:
    """Return the children with a separator between them."""
    return Markup(_text(separator).join(map(_text, children)))


def number(value: float) -> str:
    """Return a length of a picture, with up to one decimal."""
    return f"{value:.1f}".removesuffix(".0") if abs(value) < 1e9 else "0"


_NAMES: Mapping[str, str] = {
    "class_": "class",
    "view_box": "viewBox",
    "keep_ratio": "preserveAspectRatio",
}


def _name(key: str) -> str:
    return _NAMES.get(key, key.replace("_", "-"))


def _text(child: str) -> str:
    return child if isinstance(child, Markup) else escape(printable(child), quote=False)


def _escaped(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    return value if isinstance(value, Markup) else escape(printable(str(value)))


def printable(text: str, limit: int = 0) -> str:
    """Return a text in which no character controls a terminal or a page.

    Control characters, writing directions, halves of characters and unusual spaces are written as
    escapes, such as \\u202e. The result is cut to `limit` characters; 0 for no limit.
    """
    clean = "".join(
        character if character.isprintable() else _escape(character) for character in text
    )
    return f"{clean[: limit - 1]}…" if 0 < limit < len(clean) else clean


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
