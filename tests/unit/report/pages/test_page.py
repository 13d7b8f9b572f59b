"""Tests that the page and the widget are self-contained, without script, escaped and readable."""

import random
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from keyhop.report.findings import Evidence, Finding, Report
from keyhop.report.pages.document import key_map, to_json
from keyhop.report.pages.page import MOST_EVIDENCE, MOST_IN_WIDGET, page, widget
from keyhop.report.pages.pictures import DARK, LIGHT, PALETTES
from keyhop.report.rules.judge import RULES
from keyhop.report.rules.meanings import MEANINGS

from docs.draw_report import poster
from testing.marks import few
from tests.unit.report.pages.example import AT, FINDINGS, report
from tests.unit.report.pages.strategies import HOSTILE, reports

MOST_BYTES = 500_000
PAGE_ELEMENTS = {"html", "head", "meta", "title", "style", "body", "a"}
PAGE_ATTRIBUTES = {"href", "id"}
ELEMENTS = {
    *("header", "main", "footer", "section", "article", "div", "span", "p", "h1", "h2", "h3"),
    *("dl", "dt", "dd", "ul", "ol", "li", "b", "small", "code", "pre", "details", "summary"),
    *("figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "title", "desc", "g", "path", "rect", "circle", "text", "style"),
}
"""The elements that DOMPurify allows (cure53/DOMPurify, src/tags.ts) and that load nothing."""
ATTRIBUTES = {
    *("class", "scope", "title", "role", "aria-hidden", "viewBox", "preserveAspectRatio"),
    *("d", "x", "y", "cx", "cy", "r", "width", "height", "transform", "text-anchor"),
    *("vector-effect", "start", "lang", "charset", "content", "name", "http-equiv"),
}
SVG = "{http://www.w3.org/2000/svg}"


class BrowserParser(HTMLParser):
    """The elements, attributes and texts that a browser's parser finds in a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.comments: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def parse(html: str) -> BrowserParser:
    parser = BrowserParser()
    parser.feed(html)
    parser.close()
    return parser


def tree(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>"))


def check(html: str, elements: set[str], attributes: set[str] = ATTRIBUTES) -> None:
    root = tree(html)
    parser = parse(html)
    assert {element.tag for element in root.iter()} == parser.elements
    assert parser.elements <= elements
    names = {name for element in root.iter() for name in element.attrib}
    assert names <= attributes
    assert {name.lower() for name in names} == parser.attributes
    assert parser.comments == []


def test_the_page_runs_and_loads_nothing() -> None:
    html = page(report())
    check(html, ELEMENTS | PAGE_ELEMENTS, ATTRIBUTES | PAGE_ATTRIBUTES)
    assert not re.search(r"url\(|@import|https?:|//", html)
    policy = tree(html).find(".//meta[@http-equiv='Content-Security-Policy']")
    assert (policy.get("content") or "").startswith("default-src 'none'")


def test_the_page_is_small() -> None:
    assert len(page(report()).encode()) < 150_000


def test_the_page_of_a_large_report_is_small() -> None:
    chance = random.Random(3)
    heat = [
        (AT + 60 * minute, place, 10 ** chance.uniform(-1, 5))
        for minute in range(1000)
        for place in range(256)
    ]
    many = tuple(
        Finding(
            f"A{number % 18 + 1}",
            "title",
            "found",
            "medium",
            f"index{number}",
            "s" * 300,
            tuple(Evidence("code", "line" * 9, 1, where="f.py:1") for _ in range(200)),
        )
        for number in range(40)
    )
    pictures = {**report().pictures, "key_map": key_map(heat)}
    html = page(report(pictures=pictures, findings=many))
    assert len(html.encode()) <= MOST_BYTES
    assert f"And {200 - MOST_EVIDENCE} more, in the JSON." in html


@few()
@given(reports())
def test_no_text_of_a_user_becomes_markup(source: Report) -> None:
    check(page(source), ELEMENTS | PAGE_ELEMENTS, ATTRIBUTES | PAGE_ATTRIBUTES)
    check(widget(source, "dark"), ELEMENTS)
    ElementTree.fromstring(poster(to_json(source)))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_is_shown_as_text_everywhere(hostile: str) -> None:
    finding = Finding("A9", hostile, "found", "high", hostile, hostile)
    source = report(
        table={"name": hostile, "partition_key": hostile, "region": hostile},
        findings=(finding,),
        sources={hostile: hostile},
        not_assessed=(hostile,),
        options={hostile: hostile},
    )
    for html in (page(source), widget(source)):
        assert tree(html).find(".//script") is None
        assert tree(html).find(".//img") is None
        heading = "".join(next(tree(html).iter("h1")).itertext())
        assert heading.isprintable()
        assert heading.startswith(hostile[:1] if hostile[:1].isprintable() else "\\")


def test_each_picture_has_a_name_and_a_description() -> None:
    for html in (page(report()), widget(report())):
        pictures = [svg for svg in tree(html).iter("svg") if svg.get("aria-hidden") != "true"]
        assert len(pictures) >= 3
        for svg in pictures:
            assert svg.get("role") == "img"
            assert svg[0].tag == "title"
            assert svg[0].text
            assert svg[1].tag == "desc"
            assert len(svg[1].text or "") > 40


def test_each_table_has_a_caption_and_headers() -> None:
    for table in tree(page(report())).iter("table"):
        assert table.find("caption") is not None
        assert all(header.get("scope") == "col" for header in table.findall("thead/tr/th"))
        assert all(row[0].tag == "th" for row in table.findall("tbody/tr"))


def test_headings_are_in_order() -> None:
    elements = tree(page(report())).iter()
    levels = [int(element.tag[1]) for element in elements if element.tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(text: str, background: str) -> float:
    """Return the contrast of two colours as WCAG 2.2 defines it (1.4.3). Text needs 4.5."""
    high, low = sorted((luminance(text), luminance(background)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("background", ["paper", "panel"])
def test_text_has_enough_contrast(theme: str, background: str) -> None:
    palette = PALETTES[theme]
    for name in ("ink", "soft", "high", "medium", "low", "info", "unknown", "clear"):
        assert contrast(palette[name], palette[background]) >= 4.5, name


def test_both_themes_have_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


def test_each_rule_links_to_its_meaning() -> None:
    assert MEANINGS.keys() == {rule.id for rule in RULES}
    root = tree(page(report()))
    texts = {element.get("id"): " ".join(element.itertext()) for element in root.iter()}
    links = {link.text: str(link.get("href")) for link in root.iter("a")}
    assert links.keys() == {finding.id for finding in FINDINGS}
    for name, address in links.items():
        assert MEANINGS[str(name)] in texts[address.removeprefix("#")]


def test_the_page_has_all_findings_with_the_worst_first() -> None:
    text = " ".join(parse(page(report())).texts)
    positions = [text.index(finding.summary) for finding in FINDINGS]
    assert positions[0] < positions[1] < min(positions[2:])
    for finding in FINDINGS:
        for step in finding.advice.steps if finding.advice else ():
            assert step in text


def test_the_first_steps_are_visible_and_the_others_are_folded() -> None:
    visible, folded = tree(page(report())).find(".//article").findall(".//ol")
    assert len(visible) == 2
    assert folded.get("start") == "3"
    assert len(folded) == len(FINDINGS[0].advice.steps) - 2


def test_the_page_states_its_cost_and_what_was_not_assessed() -> None:
    text = " ".join(parse(page(report())).texts)
    assert report().not_assessed[0] in text
    assert "2,996 read units, 1,873 requests, $0.00038, 4 min" in text


def test_a_report_without_any_source_has_a_page() -> None:
    html = page(report(pictures={}, findings=(), estimates={}, sources={}, not_assessed=()))
    assert "Nothing was found." in html
    assert tree(html).find(".//svg") is None


def test_a_widget_has_the_colours_of_the_dashboard() -> None:
    dark, light = widget(report(), "dark"), widget(report(), "light")
    assert DARK["paper"] in dark
    assert LIGHT["paper"] in light
    for html in (dark, light):
        check(html, ELEMENTS)
        assert "var(" not in html
        assert "@media" not in html
        assert " id=" not in html
        assert html.startswith("<div")


def test_a_widget_shows_a_few_findings_and_the_number_of_the_others() -> None:
    many = tuple(Finding(f"A{n}", "t", "found", "low", "", "s.") for n in range(1, 13))
    assert f"And {12 - MOST_IN_WIDGET} more." in widget(report(findings=many))


def test_the_picture_for_documents_is_drawn_from_the_published_json() -> None:
    svg = poster(to_json(report()))
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert "Orders" in texts
    assert any(text.startswith("unseen: 40 % [32, 48]") for text in texts)
    assert "var(" not in svg
