"""The page and the widget: self-contained, without script, of escaped text, readable by all."""

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
from tests.unit.report.pages.made import HOSTILE, reports

MOST_BYTES = 500_000
PAGE_ELEMENTS = {"html", "head", "meta", "title", "style", "body", "a"}
PAGE_ATTRIBUTES = {"href", "id"}
ELEMENTS = {
    *("header", "main", "footer", "section", "article", "div", "span", "p", "h1", "h2", "h3"),
    *("dl", "dt", "dd", "ul", "ol", "li", "b", "small", "code", "pre", "details", "summary"),
    *("figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "title", "desc", "g", "path", "rect", "circle", "text", "style"),
}
"""What DOMPurify's own lists keep (cure53/DOMPurify, src/tags.ts), and none that can load."""
ATTRIBUTES = {
    *("class", "scope", "title", "role", "aria-hidden", "viewBox", "preserveAspectRatio"),
    *("d", "x", "y", "cx", "cy", "r", "width", "height", "transform", "text-anchor"),
    *("vector-effect", "start", "lang", "charset", "content", "name", "http-equiv"),
}
SVG = "{http://www.w3.org/2000/svg}"


class Seen(HTMLParser):
    """What a browser's parser finds; it must be what was meant."""

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


def seen(html: str) -> Seen:
    parser = Seen()
    parser.feed(html)
    parser.close()
    return parser


def tree(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>"))


def check(html: str, elements: set[str], attributes: set[str] = ATTRIBUTES) -> None:
    root = tree(html)
    found = seen(html)
    assert {one.tag for one in root.iter()} == found.elements
    assert found.elements <= elements
    names = {name for one in root.iter() for name in one.attrib}
    assert names <= attributes
    assert {name.lower() for name in names} == found.attributes
    assert found.comments == []


def test_the_page_has_nothing_that_runs_or_loads() -> None:
    html = page(report())
    check(html, ELEMENTS | PAGE_ELEMENTS, ATTRIBUTES | PAGE_ATTRIBUTES)
    assert not re.search(r"url\(|@import|https?:|//", html)
    policy = tree(html).find(".//meta[@http-equiv='Content-Security-Policy']")
    assert (policy.get("content") or "").startswith("default-src 'none'")


def test_the_page_is_small() -> None:
    assert len(page(report()).encode()) < 150_000


def test_the_page_is_small_however_much_there_is_to_show() -> None:
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
    whole = report()
    drawn = {**whole.pictures, "key_map": key_map(heat)}
    html = page(report(pictures=drawn, findings=many))
    assert len(html.encode()) <= MOST_BYTES
    assert f"And {200 - MOST_EVIDENCE} more, in the JSON." in html


@few()
@given(reports())
def test_no_text_of_a_user_becomes_markup(made: Report) -> None:
    check(page(made), ELEMENTS | PAGE_ELEMENTS, ATTRIBUTES | PAGE_ATTRIBUTES)
    check(widget(made, "dark"), ELEMENTS)
    ElementTree.fromstring(poster(to_json(made)))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_is_text_wherever_it_is_shown(hostile: str) -> None:
    finding = Finding("A9", hostile, "found", "high", hostile, hostile)
    made = report(
        table={"name": hostile, "partition_key": hostile, "region": hostile},
        findings=(finding,),
        sources={hostile: hostile},
        not_assessed=(hostile,),
        options={hostile: hostile},
    )
    for html in (page(made), widget(made)):
        assert tree(html).find(".//script") is None
        assert tree(html).find(".//img") is None
        heading = "".join(next(tree(html).iter("h1")).itertext())
        assert heading.isprintable()
        assert heading.startswith(hostile[:1] if hostile[:1].isprintable() else "\\")


def test_each_picture_has_a_name_and_a_description() -> None:
    for html in (page(report()), widget(report())):
        drawn = [one for one in tree(html).iter("svg") if one.get("aria-hidden") != "true"]
        assert len(drawn) >= 3
        for one in drawn:
            assert one.get("role") == "img"
            assert one[0].tag == "title"
            assert one[0].text
            assert one[1].tag == "desc"
            assert len(one[1].text or "") > 40


def test_each_table_has_a_caption_and_heads() -> None:
    for one in tree(page(report())).iter("table"):
        assert one.find("caption") is not None
        assert all(head.get("scope") == "col" for head in one.findall("thead/tr/th"))
        assert all(row[0].tag == "th" for row in one.findall("tbody/tr"))


def test_headings_are_in_order() -> None:
    levels = [
        int(one.tag[1]) for one in tree(page(report())).iter() if one.tag in ("h1", "h2", "h3")
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 has it (1.4.3): text needs 4.5."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_can_be_read(theme: str, ground: str) -> None:
    palette = PALETTES[theme]
    for name in ("ink", "soft", "high", "medium", "low", "info", "unknown", "clear"):
        assert contrast(palette[name], palette[ground]) >= 4.5, name


def test_both_themes_have_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


def test_each_rule_leads_to_what_it_means() -> None:
    assert MEANINGS.keys() == {rule.id for rule in RULES}
    root = tree(page(report()))
    places = {one.get("id"): " ".join(one.itertext()) for one in root.iter() if one.get("id")}
    links = {one.text: str(one.get("href")) for one in root.iter("a")}
    assert links.keys() == {finding.id for finding in FINDINGS}
    for name, address in links.items():
        assert MEANINGS[str(name)] in places[address.removeprefix("#")]


def test_every_finding_is_on_the_page_the_worst_first() -> None:
    text = " ".join(seen(page(report())).texts)
    places = [text.index(one.summary) for one in FINDINGS]
    assert places[0] < places[1] < min(places[2:])
    for one in FINDINGS:
        for step in one.advice.steps if one.advice else ():
            assert step in text


def test_the_first_steps_are_seen_at_once_and_the_others_on_demand() -> None:
    first = tree(page(report())).find(".//article")
    seen_at_once, others = first.findall(".//ol")
    assert len(seen_at_once) == 2
    assert others.get("start") == "3"
    assert len(others) == len(FINDINGS[0].advice.steps) - 2


def test_what_was_not_assessed_and_what_it_cost_are_on_the_page() -> None:
    text = " ".join(seen(page(report())).texts)
    assert report().not_assessed[0] in text
    assert "2,996 read units, 1,873 requests, $0.00038, 4 min" in text


def test_a_report_that_could_look_at_nothing_is_a_page_too() -> None:
    html = page(report(pictures={}, findings=(), estimates={}, sources={}, not_assessed=()))
    assert "Nothing was found." in html
    assert tree(html).find(".//svg") is None


def test_a_widget_has_the_colours_of_the_dashboards_theme() -> None:
    dark, light = widget(report(), "dark"), widget(report(), "light")
    assert DARK["paper"] in dark
    assert LIGHT["paper"] in light
    for html in (dark, light):
        check(html, ELEMENTS)
        assert "var(" not in html
        assert "@media" not in html
        assert " id=" not in html
        assert html.startswith("<div")


def test_a_widget_shows_a_few_findings_and_says_that_there_are_more() -> None:
    many = tuple(Finding(f"A{n}", "t", "found", "low", "", "s.") for n in range(1, 13))
    assert f"And {12 - MOST_IN_WIDGET} more." in widget(report(findings=many))


def test_the_picture_for_documents_is_made_of_the_published_json() -> None:
    root = ElementTree.fromstring(poster(to_json(report())))
    assert root.tag == f"{SVG}svg"
    words = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert "Orders" in words
    assert any(word.startswith("unseen: 40 % [32, 48]") for word in words)
    assert "var(" not in poster(to_json(report()))
