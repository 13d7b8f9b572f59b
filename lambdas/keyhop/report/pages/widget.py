"""The report as CloudWatch's custom widget shows it: less of it, with the same pictures. Pure.

A dashboard has its own theme, told to the function as widgetContext.theme: colours are put in, and
no browser is asked which it prefers. A first element bears the style, since a leading style element
would be moved into a head, which a widget has not.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from keyhop.report.findings import Report
from keyhop.report.pages.colours import PICTURES, Theme, resolved
from keyhop.report.pages.document import to_json
from keyhop.report.pages.markup import Markup, between, join, tag
from keyhop.report.pages.page import SEVERITY_WORDS, header, pictures_of, tallied, title_of

MOST = 8
"""Findings: a widget is small, and the worst come first."""

RULES: Final = """
.kh{color:var(--ink);background:var(--paper);font:13px/1.45 system-ui,sans-serif;padding:4px 8px}
.kh h1{font-size:19px;margin:0}.kh h1 small{font-size:12px;font-weight:400;margin-left:8px}
.kh p{margin:2px 0}.kh .soft,.kh small,.kh dt{color:var(--soft);font-size:12px}
.kh dl{display:flex;flex-wrap:wrap;gap:2px 24px;margin:6px 0}.kh dd{margin:0;font-size:15px}
.kh .tally{font-weight:600;margin:6px 0}
.kh table{border-collapse:collapse;width:100%;color:inherit;font:inherit}
.kh th,.kh td{text-align:left;vertical-align:top;padding:4px 10px 4px 0;font-weight:400;
border-top:1px solid var(--rule);overflow-wrap:break-word}
.kh tr>:first-child,.kh tr>:last-child{white-space:nowrap}
.kh td:nth-child(2){overflow-wrap:anywhere}.kh thead th{color:var(--soft);border:0}
.kh .badge{font-weight:700;color:var(--info)}
.kh .high{color:var(--high)}.kh .medium{color:var(--medium)}.kh .low{color:var(--low)}
.kh .unknown{color:var(--unknown)}.kh .clear{color:var(--clear)}
.kh .pictures{display:flex;flex-wrap:wrap;gap:12px 24px;margin-top:10px}
.kh .pictures>div{flex:1 1 300px;max-width:420px}.kh .kh-svg{width:100%;height:auto}
"""


def widget(report: Report, theme: Theme = "light") -> str:
    """A fragment of HTML without script, link or id."""
    document = to_json(report)
    found = [one for one in document["findings"] if one["status"] == "found"]
    drawn = [tag("div", one) for one in pictures_of(document).values()]
    return tag(
        "div",
        tag("style", Markup(resolved(PICTURES + RULES, theme))),
        header(document),
        tallied(report.findings),
        _table(found[:MOST]) if found else "",
        tag("p", f"And {len(found) - MOST} more.", class_="soft") if len(found) > MOST else "",
        tag("div", drawn, class_="pictures") if drawn else "",
        class_="kh",
    )


def _table(found: Iterable[Mapping[str, Any]]) -> Markup:
    heads = [tag("th", one, scope="col") for one in ("severity", "finding", "advice")]
    rows = [
        tag(
            "tr",
            tag(
                "th",
                tag("span", SEVERITY_WORDS[one["severity"]], class_=f"badge {one['severity']}"),
                tag("small", f" {one['id']}"),
                scope="row",
            ),
            tag("td", tag("b", *title_of(one)), join(". "), one["summary"]),
            tag("td", between(", ", one["advice"]["patterns"]) if one["advice"] else ""),
        )
        for one in found
    ]
    return tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
