"""Pictures that are drawn on white, on a page that is dark."""

import re

DARK = (
    "<style>@media(prefers-color-scheme:dark){:root{filter:invert(.93) hue-rotate(180deg)}}</style>"
)
"""Light becomes dark, and each colour keeps its hue."""


def for_dark_pages(svg: str) -> str:
    """Return an SVG document that suits dark pages as well."""
    return re.sub(r"<svg[^>]*>", lambda opening: f"{opening[0]}\n{DARK}", svg, count=1)
