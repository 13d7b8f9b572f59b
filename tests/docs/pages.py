"""The documentation pages at the root and in docs, with their prose, links and anchors."""

import re
from pathlib import Path

from testing.servers import ROOT

README = ROOT / "README.md"
ABOUT_THE_PROJECT = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES = [README, *ABOUT_THE_PROJECT, *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")


def name_of(page: Path) -> str:
    """Return the path of a page for a test id: docs/how-to/runs.md."""
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub creates for the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
