"""The report as lines for a terminal: what it is about, what is wrong, what to do next. Pure."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from keyhop.report import figures
from keyhop.report.findings import LOOKED, SEVERITIES, Finding, Report, worst_first
from keyhop.report.pages.baseline import Differences
from keyhop.report.pages.printable import printable

Tone = Literal["title", "high", "medium", "low", "info", "unknown", "clear", "command", "quiet"]
"""What a line is of; the command gives each its style."""

SHORT = {"high": "HIGH", "medium": "MED", "low": "LOW", "info": "INFO"}
ENDLESS = 10_000
WIDEST = 120
"""Up to this width the last column stands at the right edge."""
LEAST_ROOM = 40
"""Columns that a sentence has, however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, and what it is of."""

    text: str
    tone: Tone


def summary(report: Report, width: int = 100) -> list[Line]:
    """A screen of it. A finding that has no room ends with an ellipsis: JSON and page have all.

    width: of the terminal; 0 for no end, as where the output is a file.
    """
    width = width or ENDLESS
    findings = worst_first(report.findings)
    found = [one for one in findings if one.status == "found"]
    lines = [Line(_header(report, width), "title"), Line("", "quiet")]
    lines += _found(found, width)
    if not found:
        lines.append(Line("Nothing was found.", "clear"))
    lines += _commands(found)
    sample = report.sources.get("sample", LOOKED)
    if sample != LOOKED:
        lines += [Line("", "quiet"), *_wrapped(_no_sample(sample), width, "unknown")]
    unknown = [one for one in findings if one.status == "unknown"]
    lines += _unknown(unknown, {one.id for one in found}, width)
    open_ = {one.id for one in (*found, *unknown)}
    clear = [one.id for one in findings if one.status == "clear" and one.id not in open_]
    lines += _clear(clear, width)
    if report.not_assessed:
        lines.append(Line("", "quiet"))
        lines.append(Line("Not to be seen from outside:", "quiet"))
        for one in report.not_assessed:
            lines += _wrapped(f"  {printable(one)}", width, "quiet")
    return lines


def tally(findings: Sequence[Finding]) -> str:
    """1 high, 2 medium, 3 unknown, 12 clear."""
    return ", ".join(words for _, words in tallies(findings))


def tallies(findings: Sequence[Finding]) -> list[tuple[Tone, str]]:
    """The same, part by part: of what, and in words."""
    found = [one.severity for one in findings if one.status == "found"]
    told: list[tuple[Tone, str]] = [
        (name, f"{found.count(name)} {name}") for name in SEVERITIES if name in found
    ]
    told = told or [("clear", "nothing found")]
    statuses: tuple[Literal["unknown", "clear"], ...] = ("unknown", "clear")
    for status in statuses:
        number = sum(one.status == status for one in findings)
        told += [(status, f"{number} {status}")] if number else []
    return told


def _header(report: Report, width: int) -> str:
    left = "  ".join([printable(str(report.table.get("name", ""))), *sizes(report)])
    right = f"{figures.units(report.spent.rru)} RRU, {figures.dollars(report.spent.dollars)}"
    gap = min(width, WIDEST) - len(left) - len(right)
    return left + " " * max(2, gap) + right


def sizes(report: Report) -> list[str]:
    """Bytes, items and keys, as far as they are known."""
    told = []
    if report.table.get("bytes") is not None:
        told.append(figures.size(report.table["bytes"]))
    if report.table.get("items") is not None:
        told.append(f"{figures.count(report.table['items'])} items")
    keys = report.estimates.get("keys")
    if keys:
        told.append(keys_of(keys))
    return told


def keys_of(estimate: Any) -> str:
    """2.0 M keys [1.9, 2.1]."""
    number, space, interval = figures.count_within(estimate).partition(" [")
    return f"{number} keys{space}{interval}"


def _found(found: Sequence[Finding], width: int) -> Iterator[Line]:
    """Advice stands in a column of its own, as far as lines are of a screen's width."""
    ids = max((len(one.id) for one in found), default=0)
    ends = max((len(_advised(one)) for one in found), default=0)
    for one in found:
        head = f"{SHORT[one.severity]:<4} {one.id:<{ids}}  "
        room = max(LEAST_ROOM, width - len(head) - ends)
        said = fitting(sentence(one.target, printable(one.summary or one.title)), room)
        column = min(room, max(LEAST_ROOM, WIDEST - len(head) - ends))
        yield Line(f"{head}{said:<{column}}{_advised(one)}".rstrip(), one.severity)


def sentence(target: str, words: str) -> str:
    """With the index that it is about, unless it names that itself."""
    return words if not target or target in words else f"{printable(target, 30)}: {words}"


def _advised(finding: Finding) -> str:
    patterns = finding.advice.patterns if finding.advice else ()
    told = ", ".join(printable(one, 8) for one in patterns[:3])
    return f"  -> {told}" if told else ""


def fitting(text: str, width: int) -> str:
    """One line of it, cut at a word; nothing where there is no room."""
    if width < 1:
        return ""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    kept = line[: width - 1]
    if line[width - 1] != " " and " " in kept[width // 2 :]:
        kept = kept[: kept.rindex(" ")]
    return kept.rstrip(" ,;:") + "…"


def _commands(found: Sequence[Finding]) -> Iterator[Line]:
    """The worst finding's that has one."""
    for one in found:
        if one.advice and one.advice.command:
            yield Line("", "quiet")
            yield Line(f"Next, for {one.id}:", "quiet")
            for line in one.advice.command.splitlines():
                yield Line(f"  {printable(line)}", "command")
            return


def _no_sample(why: str) -> str:
    """Return the sentence that says why no items were read, and what allows it."""
    reason, _, remedy = printable(why).partition("; ")
    return f"No items were sampled: {reason}." + (f" To sample them: {remedy}." if remedy else "")


def _unknown(unknown: Sequence[Finding], found: set[str], width: int) -> Iterator[Line]:
    """By what would make them known. A rule that was found of one target, and is not known of
    another, is named with that.
    """
    by_remedy: dict[str, list[Finding]] = {}
    for one in unknown:
        by_remedy.setdefault(one.price.remedy if one.price else "", []).append(one)
    if not unknown:
        return
    yield Line("", "quiet")
    for remedy, those in sorted(by_remedy.items(), key=lambda one: not one[0]):
        names = (
            f"{one.id} of {printable(one.target, 30) or 'the table'}" if one.id in found else one.id
            for one in those
        )
        ids = ", ".join(dict.fromkeys(names))
        price = max((one.price.rru for one in those if one.price), default=0.0)
        cost = f"{figures.units(price)} RRU" if price else "no read units"
        how = f"{printable(remedy)} ({cost})" if remedy else "nothing that this command has tells"
        yield from _wrapped(f"UNKNOWN {ids}: {how}", width, "unknown")


def _clear(ids: Sequence[str], width: int) -> Iterator[Line]:
    """Rules that are clear of all that they were held against."""
    if ids:
        yield from _wrapped(f"CLEAR   {', '.join(dict.fromkeys(ids))}", width, "clear")


def _wrapped(words: str, width: int, tone: Tone) -> Iterator[Line]:
    """Nothing of it is cut; what a line has no room for goes on below, a little to the right."""
    inner = " " * (8 if tone != "quiet" else 4)
    room = max(LEAST_ROOM, width)
    for line in textwrap.wrap(words, room, subsequent_indent=inner, break_on_hyphens=False):
        yield Line(line, tone)


def changes(since: Differences) -> list[Line]:
    """What has changed since an older report."""
    lines = [Line("", "quiet"), Line("Since the baseline:", "title")]
    for word, findings in (("NEW", since.new), ("WORSE", since.worse), ("BETTER", since.better)):
        lines += [Line(f"{word:6} {_told(one)}", one.severity) for one in findings]
    lines += [Line(f"GONE   {_place(*which)}", "clear") for which in since.gone]
    lines += [Line(f"LOST   {_place(*which)}: not known now", "unknown") for which in since.lost]
    for one in since.estimates:
        before, now = (figures.count(value["value"]) for value in (one.before, one.now))
        lines.append(Line(f"       {printable(one.name)}: {before} before, {now} now", "quiet"))
    if len(lines) == 2:
        lines.append(Line("nothing has changed.", "clear"))
    return lines


def _told(one: Finding) -> str:
    return f"{_place(one.id, one.target)}: {printable(one.summary)}"


def _place(rule: str, target: str) -> str:
    return f"{rule} {printable(target)}" if target else rule
