"""HTML and SVG as text: what a person or a table named can only ever become text. Pure.

Elements are made by `tag`; a plain string among its children or attributes is escaped, so nothing
needs to be remembered. What comes out is XML as well as HTML.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

from keyhop.report.pages.printable import printable

EMPTY: Final = frozenset({"meta", "br", "hr"})
"""HTML elements that have no end; all others get one."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | Iterable[str]


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. class_ is class, view_box viewBox, other names have - for _. None: left out."""
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
    """Children one after the other."""
    return Markup(
        "".join(
            _text(child) if isinstance(child, str) else "".join(map(_text, child))
            for child in children
        )
    )


def between(separator: str, children: Iterable[str]) -> Markup:
    """Children with a separator between them."""
    return Markup(_text(separator).join(map(_text, children)))


def number(value: float) -> str:
    """A length of a picture: one decimal at most."""
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
