"""Tests that every link of the documents has a target, and that every page is linked."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import ABOUT_THE_PROJECT, PAGES, README, anchors, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    dead = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        if not target.exists() or (parts.fragment and parts.fragment not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_headings_are_anchors_and_fenced_blocks_have_neither_headings_nor_links(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `run`, resumed\n[x](#a-run-resumed) [y](no.md)\n```\n# no [z](q.md)\n```\n"
    )
    assert anchors(page) == {"a-run-resumed"}
    assert links(page) == ["#a-run-resumed", "no.md"]


def test_every_page_is_two_clicks_from_the_readme() -> None:
    def linked(page: Path) -> set[Path]:
        return {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}

    assert set(PAGES) <= {README, *linked(README), *linked(README.parent / "docs" / "index.md")}


def test_the_site_lists_every_page() -> None:
    """Readers find a page that is not in the navigation only by search."""
    docs = README.parent / "docs"
    navigation = (docs / "mkdocs.yml").read_text()
    for page in set(PAGES) - {README, *ABOUT_THE_PROJECT}:
        assert f": {page.relative_to(docs)}\n" in navigation, page
