"""The report as HTML, without script, network and fonts: a page, and CloudWatch's custom widget.

A dashboard has a theme, which the widget gets as widgetContext.theme: its colours are values, and
no browser is asked for its preference. The widget's style is in its first element, because a
leading style element would be moved into a head, which a widget does not have.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from keyhop.report import figures
from keyhop.report.advice import PATTERNS
from keyhop.report.findings import Finding, Report
from keyhop.report.pages import tables
from keyhop.report.pages.document import to_json
from keyhop.report.pages.markup import Child, Markup, between, join, tag
from keyhop.report.pages.pictures import (
    PICTURES,
    Theme,
    coarse,
    key_map,
    lorenz,
    resolved,
    sizes,
    variables,
)
from keyhop.report.pages.tables import code, table
from keyhop.report.pages.text import keys_of, tallies
from keyhop.report.rules.meanings import MEANINGS, THRESHOLDS
from keyhop.wording import counted, duration

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A browser may load nothing for the page, whatever a name in it contains."""

MOST_EVIDENCE = 30
MOST_IN_WIDGET = 8
"""A widget is small, and the worst findings come first."""
FIRST_STEPS = 2
"""The steps of an advice that are visible at first; the others are folded, except in print."""
SEVERITY_WORDS = {"high": "High", "medium": "Medium", "low": "Low", "info": "Info"}
Document = Mapping[str, Any]


def page(report: Report) -> str:
    """Return the page, as a file."""
    document = to_json(report)
    name = str(document["table"].get("name", ""))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"Key report of {name}"),
        tag("style", Markup(_styles())),
    )
    body = tag(
        "body",
        tag("header", _header(document), _tally(report.findings)),
        tag("main", list(_sections(document))),
        tag("footer", _provenance(document)),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def _styles() -> str:
    """Return the styles: light, dark for a reader who prefers that, and light in print."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}"
    return f":root{{{variables('light')}}}{dark}{PICTURES}{PAGE}"


def widget(report: Report, theme: Theme = "light") -> str:
    """Return the widget, a fragment of HTML without script, link or id."""
    document = to_json(report)
    findings = [finding for finding in document["findings"] if finding["status"] == "found"]
    pictures = [tag("div", picture) for picture in _pictures(document).values()]
    return tag(
        "div",
        tag("style", Markup(resolved(PICTURES + WIDGET, theme))),
        _header(document),
        _tally(report.findings),
        _brief(findings[:MOST_IN_WIDGET]) if findings else "",
        tag("p", f"And {len(findings) - MOST_IN_WIDGET} more.", class_="soft")
        if len(findings) > MOST_IN_WIDGET
        else "",
        tag("div", pictures, class_="pictures") if pictures else "",
        class_="kh",
    )


def _header(document: Document) -> Markup:
    """Return the table with its size and the cost of the report."""
    table_, spent = document["table"], document["spent"]
    keys = document["estimates"].get("keys")
    facts = [
        ("size", figures.size(table_["bytes"]) if table_.get("bytes") is not None else None),
        ("items", figures.count(table_["items"]) if table_.get("items") is not None else None),
        ("partition keys", keys_of(keys).replace(" keys", "") if keys else None),
        ("spent", f"{figures.units(spent['rru'])} RRU, {figures.dollars(spent['dollars'])}"),
    ]
    names = [str(table_[name]) for name in ("partition_key", "sort_key") if table_.get(name)]
    line = [
        f"key {' / '.join(names)}" if names else "",
        *(str(table_[name]) for name in ("billing", "region") if table_.get(name)),
        figures.when(document["at"]),
    ]
    return tag(
        "div",
        tag("h1", str(table_.get("name", "")), tag("small", "key report")),
        tag("p", " · ".join(part for part in line if part), class_="soft"),
        tag(
            "dl",
            [
                tag("div", tag("dt", name), tag("dd", value))
                for name, value in facts
                if value is not None
            ],
        ),
        class_="head",
    )


def _tally(findings: Sequence[Finding]) -> Markup:
    """Return the number of findings of each severity in its colour."""
    counts = [tag("span", words, class_=f"badge {name}") for name, words in tallies(findings)]
    return tag("p", between(", ", counts), class_="tally")


def _sections(document: Document) -> Iterable[Markup]:
    by_status = {
        status: [finding for finding in document["findings"] if finding["status"] == status]
        for status in ("found", "unknown", "clear")
    }
    findings = [_finding(finding) for finding in by_status["found"]]
    yield _section("Findings", findings or tag("p", "Nothing was found.", class_="calm"))
    yield from _figures(document)
    yield from _unknown(by_status["unknown"])
    yield from _clear(by_status["clear"])
    yield from _meanings(document["findings"])


def _section(title: str, *children: Child) -> Markup:
    return tag("section", tag("h2", title), *children)


def _finding(finding: Mapping[str, Any]) -> Markup:
    """Return a finding with its evidence and its advice."""
    advice = finding["advice"]
    return tag(
        "article",
        tag(
            "div",
            tag("span", SEVERITY_WORDS[finding["severity"]], class_=f"badge {finding['severity']}"),
            _rule(finding, class_="rule"),
            class_="label",
        ),
        tag(
            "div",
            tag("h3", _title(finding)),
            tag("p", finding["summary"]),
            _evidence(finding["evidence"]) if finding["evidence"] else "",
            class_="what",
        ),
        _advice(advice) if advice else "",
        class_=f"finding {finding['severity']}",
    )


def _rule(finding: Mapping[str, Any], class_: str | None = None) -> Markup:
    """Return the id of the rule, as a link to what the rule means."""
    name = finding["id"]
    href = f"#rule-{name}" if name in MEANINGS else None
    return tag("a", name, href=href, class_=class_)


def _title(finding: Mapping[str, Any]) -> Child:
    """Return the title of the rule, and the index."""
    title = finding["title"][:1].upper() + finding["title"][1:]
    return [join(title), *([join(": "), code(finding["target"])] if finding["target"] else [])]


def _advice(advice: Mapping[str, Any]) -> Markup:
    patterns = [
        tag("span", f"{pattern} {PATTERNS.get(pattern, '')}".strip(), class_="pattern")
        for pattern in advice["patterns"]
    ]
    steps = [tag("li", step) for step in advice["steps"]]
    more = len(steps) - FIRST_STEPS
    cost = advice["cost"]
    return tag(
        "div",
        tag("p", patterns, class_="patterns") if patterns else "",
        tag("ol", steps[:FIRST_STEPS]) if steps else "",
        tag(
            "details",
            tag("summary", f"{more} more"),
            tag("ol", steps[FIRST_STEPS:], start=FIRST_STEPS + 1),
        )
        if more > 0
        else "",
        tag("pre", tag("code", between(Markup("\n"), advice["command"].splitlines())))
        if advice["command"]
        else "",
        tag("p", _money(cost), class_="money") if cost else "",
        class_="advice",
    )


def _money(cost: Mapping[str, Any]) -> Child:
    today, advised, once = (cost[name] for name in ("today", "advised", "one_off"))
    parts = []
    if figures.is_known(today) and figures.is_known(advised):
        parts.append(f"{figures.dollars(today)} → {figures.dollars(advised)} a month")
    elif figures.is_known(advised):
        parts.append(f"{figures.dollars(advised)} a month")
    if figures.is_known(once) and once:
        parts.append(f"{figures.dollars(once)} once")
    return ", ".join(parts)


def _evidence(rows: Sequence[Mapping[str, Any]]) -> Markup:
    heads = ("figure", "source", "value", "threshold")
    cells = (
        (
            [
                join(evidence["signal"]),
                tag("small", f" {evidence['where']}") if evidence["where"] else Markup(""),
            ],
            evidence["source"],
            _value(evidence),
            figures.count(evidence["threshold"])
            if figures.is_known(evidence["threshold"])
            else tables.NOTHING,
        )
        for evidence in rows[:MOST_EVIDENCE]
    )
    more = len(rows) - MOST_EVIDENCE
    return tag(
        "details",
        tag("summary", "Evidence"),
        table("Evidence", heads, cells, numbers=2),
        tag("p", f"And {more:,} more, in the JSON.", class_="soft") if more > 0 else "",
    )


def _value(evidence: Mapping[str, Any]) -> str:
    value = (
        figures.count_within(evidence) if figures.is_known(evidence["value"]) else tables.NOTHING
    )
    return f"{value}, n {evidence['n']:,}" if evidence["n"] else value


def _pictures(document: Document) -> dict[str, Markup]:
    """Return the pictures by name."""
    data = document["pictures"]
    pictures = {}
    if "key_map" in data:
        pictures["key_map"] = key_map(coarse(data["key_map"], 90, 64)).svg()
    if "sizes" in data:
        pictures["sizes"] = sizes(data["sizes"]).svg()
    if "lorenz" in data:
        pictures["lorenz"] = lorenz(data["lorenz"]).svg()
    return pictures


def _figure(title: str, *children: Child, class_: str | None = None) -> Markup:
    return tag("figure", tag("figcaption", title), *children, class_=class_)


def _figures(document: Document) -> Iterable[Markup]:
    data, pictures = document["pictures"], _pictures(document)
    first = []
    if "key_map" in pictures:
        wide = key_map(data["key_map"], 760, 520).svg()
        first.append(
            _figure(
                "Key map: writes by hash place and time",
                tag("div", wide, class_="wide"),
                tag("div", pictures["key_map"], class_="narrow"),
                class_="map",
            )
        )
    if "sizes" in pictures:
        first.append(_figure("Sizes of collections", pictures["sizes"]))
    if "lorenz" in pictures:
        first.append(_figure("Items over keys", pictures["lorenz"]))
    if first:
        yield _section("The keys", tag("div", first, class_="grid"))
    rows = list(_rows(data))
    if rows:
        yield _section("The items", tag("div", rows, class_="grid"))
    if "indexes" in data:
        yield _section("Indexes", tables.indexes(data["indexes"]))
    if "candidates" in data:
        yield _section("Candidate keys", tables.candidates(data["candidates"]))
    money = tables.costs(document["findings"])
    if money:
        yield _section("Cost", money)


def _rows(data: Mapping[str, Any]) -> Iterable[Markup]:
    if "top" in data:
        limit = data.get("sizes", {}).get("limit")
        local = data.get("sizes", {}).get("local_indexes")
        note = ""
        if not data["top"]["biased"] and not data["top"]["exhaustive"]:
            note = "From a uniform sample only: larger collections may be missing."
        yield tag(
            "figure",
            tables.top(data["top"], limit if local else None),
            tag("p", note, class_="soft") if note else "",
        )
    if "writers" in data:
        yield tag("figure", tables.writers(data["writers"]))
    if "item_bytes" in data:
        yield tag("figure", tables.item_bytes(data["item_bytes"]))
    for name, caption, head in (
        ("tags", "Type tags", "tag"),
        ("shapes", "Shapes of items", "attributes"),
        ("attributes", "Attributes", "attribute"),
    ):
        if name in data:
            yield tag("figure", tables.of_shares(caption, head, data[name]))


def _unknown(findings: list[Mapping[str, Any]]) -> Iterable[Markup]:
    if not findings:
        return
    rows = []
    for finding in findings:
        price = finding["price_of_knowing"]
        remedy = code(price["remedy"]) if price and price["remedy"] else tables.NOTHING
        cost = f"{figures.units(price['rru'])} RRU" if price and price["rru"] else tables.NOTHING
        what = [_rule(finding), join(" "), *_title(finding)]
        rows.append((what, finding["summary"], [remedy], cost))
    heads = ("rule", "why it is not known", "what would answer it", "price")
    yield _section("Unknown", table("Rules without an answer", heads, rows, numbers=1))


def _clear(findings: list[Mapping[str, Any]]) -> Iterable[Markup]:
    if not findings:
        return
    rows = [
        ([_rule(finding), join(" "), *_title(finding)], finding["summary"]) for finding in findings
    ]
    yield _section("Clear", table("Rules that found nothing", ("rule", "reason"), rows))


def _meanings(findings: Sequence[Mapping[str, Any]]) -> Iterable[Markup]:
    titles = {finding["id"]: finding["title"] for finding in findings}
    rules = [
        tag("div", tag("dt", f"{name} {titles[name]}"), tag("dd", meaning), id=f"rule-{name}")
        for name, meaning in MEANINGS.items()
        if name in titles
    ]
    if rules:
        yield _section(
            "What the rules mean",
            tag("dl", rules, class_="rules"),
            tag("p", "The thresholds: ", tag("code", THRESHOLDS), class_="soft"),
        )


def _provenance(document: Document) -> Markup:
    spent = document["spent"]
    cost = (
        f"{figures.units(spent['rru'])} read units, {counted(spent['requests'], 'request')}, "
        f"{figures.dollars(spent['dollars'])}"
    )
    if figures.is_known(spent["seconds"]):
        cost += f", {duration(spent['seconds'])}"
    sources = [*document["sources"].items()]
    not_assessed = [tag("li", words) for words in document["not_assessed"]]
    options = ", ".join(f"{name} {value}" for name, value in document["options"].items())
    return join(
        _section("What the report cannot assess", tag("ul", not_assessed)) if not_assessed else "",
        _section(
            "How the report was made",
            table("Sources", ("source", "result"), sources) if sources else "",
            tag("p", f"Spent: {cost}. Keys are shown as: {document['show_keys']}.", class_="soft"),
            tag("p", f"Options: {options}.", class_="soft") if options else "",
            tag(
                "p",
                "Intervals in brackets contain the true value in 95 of 100 samples. GB, MB and KB "
                "are powers of 1,024, as in DynamoDB's limits.",
                class_="soft",
            ),
        ),
    )


def _brief(findings: Iterable[Mapping[str, Any]]) -> Markup:
    heads = [tag("th", name, scope="col") for name in ("severity", "finding", "advice")]
    rows = [
        tag(
            "tr",
            tag(
                "th",
                tag(
                    "span",
                    SEVERITY_WORDS[finding["severity"]],
                    class_=f"badge {finding['severity']}",
                ),
                tag("small", f" {finding['id']}"),
                scope="row",
            ),
            tag("td", tag("b", *_title(finding)), join(". "), finding["summary"]),
            tag("td", between(", ", finding["advice"]["patterns"]) if finding["advice"] else ""),
        )
        for finding in findings
    ]
    return tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))


PAGE: Final = """
*{box-sizing:border-box}
html{background:var(--paper);color:var(--ink);-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:1240px;padding:28px 24px 48px;
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
h1{font-size:30px;line-height:1.15;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}
h1 small{font-size:14px;font-weight:400;color:var(--soft);margin-left:12px;letter-spacing:0}
h2{font-size:13px;text-transform:uppercase;letter-spacing:.07em;color:var(--soft);
margin:40px 0 12px;padding-top:12px;border-top:1px solid var(--rule);font-weight:600}
h3{font-size:16px;line-height:1.3;margin:0 0 2px;overflow-wrap:anywhere}
p{margin:0 0 6px}small{color:var(--soft);font-size:12px;font-weight:400}
.soft{color:var(--soft);font-size:13px;overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.87em}
code{overflow-wrap:anywhere}
.head dl{display:flex;flex-wrap:wrap;gap:8px 36px;margin:16px 0 0}
.head dt{font-size:12px;color:var(--soft)}
.head dd{margin:0;font-size:19px;font-variant-numeric:tabular-nums}
.tally{margin:18px 0 0;font-size:17px;font-weight:600}
.finding{display:grid;grid-template-columns:92px minmax(0,1fr) minmax(0,.85fr);gap:4px 24px;
padding:14px 16px;margin:0 0 10px;background:var(--panel);border-left:4px solid var(--info);
border-radius:3px;break-inside:avoid}
.finding.high{border-color:var(--high)}.finding.medium{border-color:var(--medium)}
.finding.low{border-color:var(--low)}
.label{display:flex;flex-direction:column;gap:1px}
.badge{font-weight:700;color:var(--info)}.badge.high{color:var(--high)}
.badge.medium{color:var(--medium)}.badge.low{color:var(--low)}
.badge.unknown{color:var(--unknown)}.badge.clear{color:var(--clear)}
.rule{color:var(--soft);font-size:13px}
a{color:inherit;font-weight:600}a.rule{font-weight:400}
.rules{columns:2;column-gap:36px;font-size:13.5px;margin:0}
.rules div{break-inside:avoid;margin:0 0 8px}
.rules dt{font-weight:600}.rules dd{margin:0;color:var(--soft)}
.rules div:target{background:var(--panel)}
.what p{margin-bottom:4px;overflow-wrap:anywhere}
.advice{border-left:1px solid var(--rule);padding-left:20px;font-size:14px}
.patterns{display:flex;flex-wrap:wrap;gap:4px 14px;font-weight:600}
.advice ol{margin:0 0 6px;padding-left:20px}.advice li{margin:0 0 2px;overflow-wrap:anywhere}
pre{margin:6px 0;padding:7px 10px;background:var(--paper);border:1px solid var(--rule);
border-radius:3px;white-space:pre-wrap;overflow-wrap:anywhere}
.money{color:var(--soft);font-variant-numeric:tabular-nums}
.calm{color:var(--clear);font-weight:600}
details{margin:4px 0;font-size:13px}.advice details{font-size:14px}.advice summary{font-size:13px}
summary{color:var(--soft);cursor:pointer}
figure{margin:0;min-width:0;break-inside:avoid}
figcaption,caption{font-weight:600;font-size:14px;text-align:left;margin:0 0 6px;padding:0 0 6px}
.grid{display:grid;grid-template-columns:repeat(12,minmax(0,1fr));gap:28px 36px}
.grid>figure{grid-column:span 4}
.grid>.map{grid-column:span 8;grid-row:span 2}
.kh-svg{display:block;width:100%;height:auto}.narrow{display:none}
.scroll{overflow-x:auto}
section>.scroll caption,details caption{position:absolute;width:1px;height:1px;overflow:hidden;
clip-path:inset(50%)}
.grid th small{display:block}.grid tbody th,.grid tbody td{vertical-align:middle}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{text-align:left;vertical-align:top;padding:5px 14px 5px 0;border-top:1px solid var(--grid);
overflow-wrap:anywhere}
th:last-child,td:last-child{padding-right:0}
thead th{font-weight:400;color:var(--soft);font-size:12px;border-top:0;padding-top:0}
tbody th{font-weight:400;min-width:92px}section>.scroll td{min-width:72px}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
.grid td:nth-child(2){width:34%;min-width:70px;vertical-align:middle}
.bar{display:block}.kh-bar{display:block;width:100%;height:14px}
@media (max-width:900px){
body{padding:20px 16px 40px}.head dl{gap:8px 24px}.head dd{font-size:17px}
.finding{grid-template-columns:minmax(0,1fr);padding:12px 14px}
.label{flex-direction:row;gap:8px;align-items:baseline}
.advice{border-left:0;padding:8px 0 0;border-top:1px solid var(--rule);margin-top:6px}
.grid{grid-template-columns:minmax(0,1fr)}
.grid>figure,.grid>.map{grid-column:auto;grid-row:auto}
.wide{display:none}.narrow{display:block}
.grid code{font-size:12px}.rules{columns:1}}
@media print{
body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}
.finding{background:none;border:1px solid var(--rule);border-left-width:4px}
details::details-content{content-visibility:visible;display:block}
summary{display:none}.scroll{overflow:visible}}
"""

WIDGET: Final = """
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
