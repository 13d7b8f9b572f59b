"""The report as lines for a terminal."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from keyhop.report import figures
from keyhop.report.findings import (
    LOOKED,
    SEVERITIES,
    Evidence,
    Finding,
    Report,
    worst_first,
)
from keyhop.report.pages.baseline import Differences
from keyhop.report.pages.markup import printable
from keyhop.report.rules.meanings import THRESHOLDS

Tone = Literal[
    "title", "high", "medium", "low", "info", "body", "unknown", "clear", "command", "quiet"
]
"""The kind of a line, for which the command has a style."""

SHORT = {"high": "HIGH", "medium": "MED", "low": "LOW", "info": "INFO"}
ENDLESS = 10_000
WIDEST = 120
"""Up to this width the last column is at the right edge."""
LEAST_ROOM = 40
"""The minimum number of columns of a sentence, in any terminal."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line and its kind."""

    text: str
    tone: Tone


def summary(report: Report, width: int = 100, verbose: bool = False) -> list[Line]:
    """Return a summary of the report.

    Args:
        report: The report.
        width: The columns of the terminal; 0 means no limit, for output to a file.
        verbose: Whether to include all evidence and all steps, as the page and the JSON do, and
            the sentences of the rules that are unknown or clear.
    """
    width = width or ENDLESS
    findings = worst_first(report.findings)
    found = [finding for finding in findings if finding.status == "found"]
    lines = [Line(_header(report, width), "title"), Line("", "quiet")]
    lines += _found(found, width, verbose)
    if not found:
        lines.append(Line("Nothing was found.", "clear"))
    lines += _commands(found)
    sample = report.sources.get("sample", LOOKED)
    if sample != LOOKED:
        lines += [Line("", "quiet"), *_wrapped(_no_sample(sample), width, "unknown")]
    unknown = [finding for finding in findings if finding.status == "unknown"]
    lines += _unknown(unknown, {finding.id for finding in found}, width)
    open_ = {finding.id for finding in (*found, *unknown)}
    clear = (
        finding for finding in findings if finding.status == "clear" and finding.id not in open_
    )
    if verbose:
        lines += _in_full([*unknown, *clear], width)
    else:
        lines += _clear([_rule(finding) for finding in clear], width)
    lines += [Line("", "quiet"), Line(f"What each rule means: {THRESHOLDS}", "quiet")]
    if report.not_assessed:
        lines.append(Line("", "quiet"))
        lines.append(Line("What the report cannot assess:", "quiet"))
        for words in report.not_assessed:
            lines += _wrapped(f"  {printable(words)}", width, "quiet")
    return lines


def tally(findings: Sequence[Finding]) -> str:
    """Return the numbers of findings, such as `1 high, 2 medium, 3 unknown, 12 clear`."""
    return ", ".join(words for _, words in tallies(findings))


def tallies(findings: Sequence[Finding]) -> list[tuple[Tone, str]]:
    """Return the numbers of findings in words, each with its kind."""
    severities = [finding.severity for finding in findings if finding.status == "found"]
    tallies_: list[tuple[Tone, str]] = [
        (name, f"{severities.count(name)} {name}") for name in SEVERITIES if name in severities
    ]
    tallies_ = tallies_ or [("clear", "nothing found")]
    statuses: tuple[Literal["unknown", "clear"], ...] = ("unknown", "clear")
    for status in statuses:
        number = sum(finding.status == status for finding in findings)
        tallies_ += [(status, f"{number} {status}")] if number else []
    return tallies_


def _header(report: Report, width: int) -> str:
    left = "  ".join([printable(str(report.table.get("name", ""))), *sizes(report)])
    right = f"{figures.units(report.spent.rru)} RRU, {figures.dollars(report.spent.dollars)}"
    gap = min(width, WIDEST) - len(left) - len(right)
    return left + " " * max(2, gap) + right


def sizes(report: Report) -> list[str]:
    """Return the known ones of bytes, items and keys."""
    words = []
    if report.table.get("bytes") is not None:
        words.append(figures.size(report.table["bytes"]))
    if report.table.get("items") is not None:
        words.append(f"{figures.count(report.table['items'])} items")
    keys = report.estimates.get("keys")
    if keys:
        words.append(keys_of(keys))
    return words


def keys_of(estimate: Any) -> str:
    """Write the number of keys, such as `2.0 M keys [1.9, 2.1]`."""
    number, space, interval = figures.count_within(estimate).partition(" [")
    return f"{number} keys{space}{interval}"


def _found(findings: Sequence[Finding], width: int, verbose: bool) -> Iterator[Line]:
    """Yield each finding: its rule, its sentence, the evidence with its interval, and advice.

    Evidence that the sentence contains is repeated only if `verbose`, and so are further steps.
    """
    for finding in findings:
        rule = fitting(_rule(finding), max(LEAST_ROOM, width - 5))
        yield Line(f"{SHORT[finding.severity]:<4} {rule}", finding.severity)
        words = printable(finding.summary or finding.title)
        yield from _wrapped(f"     {sentence(finding.target, words)}", width, "body")
        rows = finding.evidence if verbose else _interval_of(finding)
        yield from _evidence_lines(rows, width)
        if advised := _advised(finding):
            yield from _wrapped(f"     Advice: {advised}", width, "body")
        for step in finding.advice.steps[1:] if verbose and finding.advice else ():
            yield from _wrapped(f"     - {printable(step)}", width, "body")


def _interval_of(finding: Finding) -> Sequence[Evidence]:
    """Return the first evidence with an interval, unless the sentence contains an interval."""
    if "[" in finding.summary:
        return ()
    intervals = (row for row in finding.evidence if row.low is not None and row.low != row.high)
    return [*intervals][:1]


def _evidence_lines(rows: Sequence[Evidence], width: int) -> Iterator[Line]:
    """Yield each row with its value, interval, threshold and source."""
    for row in rows:
        parts = [row.signal]
        if row.value is not None:
            estimate = {"value": row.value, "low": row.low, "high": row.high}
            parts.append(f": {figures.count_within(estimate)}")
        if row.threshold is not None:
            parts.append(f", threshold {figures.count(row.threshold)}")
        parts.append(f" ({row.source}{', ' if row.where else ''}{row.where})")
        yield from _wrapped(f"     Evidence: {printable(''.join(parts))}", width, "body")


def _in_full(findings: Sequence[Finding], width: int) -> Iterator[Line]:
    """Yield each rule that is unknown or clear, with its sentence and its evidence."""
    for finding in findings:
        yield Line("", "quiet")
        tone: Tone = "unknown" if finding.status == "unknown" else "clear"
        yield from _wrapped(f"{finding.status.upper():7} {_rule(finding)}", width, tone)
        words = printable(finding.summary or finding.title)
        yield from _wrapped(f"     {sentence(finding.target, words)}", width, "body")
        yield from _evidence_lines(finding.evidence, width)


def _rule(finding: Finding) -> str:
    return f"{finding.id} {printable(finding.title)}"


def sentence(target: str, words: str) -> str:
    """Return a finding's sentence after the name of the index, unless it names the index."""
    return words if not target or target in words else f"{printable(target, 30)}: {words}"


def _advised(finding: Finding) -> str:
    """Return the first step against a finding, and the patterns that help."""
    if finding.advice is None:
        return ""
    patterns = ", ".join(printable(pattern, 8) for pattern in finding.advice.patterns[:3])
    step = printable(finding.advice.steps[0]) if finding.advice.steps else ""
    return f"{step} ({patterns})" if step and patterns else step or patterns


def fitting(text: str, width: int) -> str:
    """Return a text as one line, cut at a word; "" if there is not enough room."""
    if width < 1:
        return ""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    start = line[: width - 1]
    if line[width - 1] != " " and " " in start[width // 2 :]:
        start = start[: start.rindex(" ")]
    return start.rstrip(" ,;:") + "…"


def _commands(findings: Sequence[Finding]) -> Iterator[Line]:
    """Yield the command of the worst finding that has one."""
    for finding in findings:
        if finding.advice and finding.advice.command:
            yield Line("", "quiet")
            yield Line(f"Next, for {finding.id}:", "quiet")
            for line in finding.advice.command.splitlines():
                yield Line(f"  {printable(line)}", "command")
            return


def _no_sample(why: str) -> str:
    """Return the sentence that says why no items were read, and what allows it."""
    reason, _, remedy = printable(why).partition("; ")
    return f"No items were sampled: {reason}." + (f" To sample them: {remedy}." if remedy else "")


def _unknown(unknown: Sequence[Finding], found_rules: set[str], width: int) -> Iterator[Line]:
    """Yield the unknown rules, grouped by what would answer them.

    A rule that was found for another target is named with its target.
    """
    by_remedy: dict[str, list[Finding]] = {}
    for finding in unknown:
        by_remedy.setdefault(finding.price.remedy if finding.price else "", []).append(finding)
    if not unknown:
        return
    yield Line("", "quiet")
    for remedy, findings in sorted(by_remedy.items(), key=lambda pair: not pair[0]):
        names = (
            f"{_rule(finding)} ({printable(finding.target, 30) or 'the table'})"
            if finding.id in found_rules
            else _rule(finding)
            for finding in findings
        )
        rules = "; ".join(dict.fromkeys(names))
        yield from _wrapped(f"UNKNOWN {rules}", width, "unknown")
        price = max((finding.price.rru for finding in findings if finding.price), default=0.0)
        cost = f"{figures.units(price)} RRU" if price else "no read units"
        how = (
            f"To know more: {printable(remedy)} ({cost})"
            if remedy
            else "No option of this command answers this"
        )
        yield from _wrapped(f"        {how}.", width, "unknown")


def _clear(rules: Sequence[str], width: int) -> Iterator[Line]:
    """Yield the rules that are clear for all targets."""
    if rules:
        yield Line("", "quiet")
        yield from _wrapped(f"CLEAR   {'; '.join(dict.fromkeys(rules))}", width, "clear")


def _wrapped(words: str, width: int, tone: Tone) -> Iterator[Line]:
    """Yield words over as many lines as they need, indented after the first."""
    leading = len(words) - len(words.lstrip())
    inner = " " * (max(4, leading) if tone in ("quiet", "body") else 8)
    room = max(LEAST_ROOM, width)
    for line in textwrap.wrap(words, room, subsequent_indent=inner, break_on_hyphens=False):
        yield Line(line, tone)


def changes(since: Differences) -> list[Line]:
    """Return the changes since an older report."""
    lines = [Line("", "quiet"), Line("Since the baseline:", "title")]
    for word, findings in (("NEW", since.new), ("WORSE", since.worse), ("BETTER", since.better)):
        for finding in findings:
            words = f"{_place(finding.id, finding.target)}: {printable(finding.summary)}"
            lines.append(Line(f"{word:6} {words}", finding.severity))
    lines += [Line(f"GONE   {_place(*which)}", "clear") for which in since.gone]
    lines += [Line(f"LOST   {_place(*which)}: not known now", "unknown") for which in since.lost]
    for moved in since.estimates:
        before, now = (figures.count(value["value"]) for value in (moved.before, moved.now))
        lines.append(Line(f"       {printable(moved.name)}: {before} before, {now} now", "quiet"))
    if len(lines) == 2:
        lines.append(Line("nothing has changed.", "clear"))
    return lines


def _place(rule: str, target: str) -> str:
    return f"{rule} {printable(target)}" if target else rule
