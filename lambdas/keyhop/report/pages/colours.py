"""The colours of pages and pictures, light and dark, and the rules that use them. Pure.

A rule names a colour as var(--ink). `resolved` puts the values in, for what stands alone: a picture
in a document, a widget, whose theme is told and not asked for.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

Theme = Literal["light", "dark"]

LIGHT: Final[Mapping[str, str]] = {
    "paper": "#ffffff",
    "panel": "#f7f8fa",
    "ink": "#1f2933",
    "soft": "#52606d",
    "rule": "#d9dee4",
    "grid": "#e9ecf0",
    "data": "#1b7f5a",
    "band": "#bfe0d1",
    "high": "#b3261e",
    "medium": "#9a5a12",
    "low": "#2b62a3",
    "info": "#5b6672",
    "unknown": "#6b5b95",
    "clear": "#1b7f5a",
    "h0": "#e6f1ec",
    "h1": "#c3e0d3",
    "h2": "#8fc8ae",
    "h3": "#55a884",
    "h4": "#1b7f5a",
    "h5": "#0d4f38",
    "h6": "#c8102e",
}
DARK: Final[Mapping[str, str]] = {
    "paper": "#14191e",
    "panel": "#1c2329",
    "ink": "#e6eaee",
    "soft": "#a3afba",
    "rule": "#333d47",
    "grid": "#262f37",
    "data": "#4cc093",
    "band": "#23513f",
    "high": "#ff8a80",
    "medium": "#f0b060",
    "low": "#86b7f0",
    "info": "#a9b4bf",
    "unknown": "#c0aee8",
    "clear": "#4cc093",
    "h0": "#1a2b26",
    "h1": "#1d4034",
    "h2": "#1f5c47",
    "h3": "#2a8263",
    "h4": "#4cc093",
    "h5": "#c4f5dd",
    "h6": "#ff5a52",
}
PALETTES: Final[Mapping[Theme, Mapping[str, str]]] = {"light": LIGHT, "dark": DARK}

PICTURES: Final = """
.kh-svg{font:11px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--ink)}
.kh-t{fill:var(--ink)}.kh-s{fill:var(--soft)}.kh-b{font-weight:600}
.kh-g{stroke:var(--grid);fill:none}.kh-a{stroke:var(--rule);fill:none}
.kh-d{fill:var(--data)}.kh-l{stroke:var(--data);fill:none;stroke-width:1.8}
.kh-w{stroke:var(--ink);fill:none;stroke-width:1.4}.kh-m{stroke:var(--high);fill:none}
.kh-mt{fill:var(--high)}.kh-band{fill:var(--band)}.kh-dash{stroke-dasharray:4 3}
.kh-hatch{stroke:var(--medium);fill:none;stroke-width:.9;opacity:.75}.kh-ht{fill:var(--medium)}
.kh-zone{fill:var(--panel);stroke:none}.kh-cells path{stroke-width:1.04}
.kh-cells .kh-0{stroke:var(--h0)}.kh-cells .kh-1{stroke:var(--h1)}
.kh-cells .kh-2{stroke:var(--h2)}.kh-cells .kh-3{stroke:var(--h3)}
.kh-cells .kh-4{stroke:var(--h4)}.kh-cells .kh-5{stroke:var(--h5)}
.kh-cells .kh-6{stroke:var(--h6)}
.kh-0{fill:var(--h0)}.kh-1{fill:var(--h1)}.kh-2{fill:var(--h2)}.kh-3{fill:var(--h3)}
.kh-4{fill:var(--h4)}.kh-5{fill:var(--h5)}.kh-6{fill:var(--h6)}
.kh-halo{paint-order:stroke;stroke:var(--paper);stroke-width:3.5px;stroke-linejoin:round}
.kh-high{fill:var(--high)}.kh-medium{fill:var(--medium)}
.kh-low{fill:var(--low)}.kh-info{fill:var(--info)}.kh-unknown{fill:var(--unknown)}
.kh-paper{fill:var(--paper)}
"""
"""Of the pictures, which are alike on the page, in a widget and in the documents."""


def variables(theme: Theme) -> str:
    """--paper:#ffffff;...: for a rule of the page's root."""
    return "".join(f"--{name}:{value};" for name, value in PALETTES[theme].items())


def resolved(rules: str, theme: Theme) -> str:
    """The rules with values in place of names."""
    palette = PALETTES[theme]
    return re.sub(r"var\(--(\w+)\)", lambda found: palette[found[1]], rules)
