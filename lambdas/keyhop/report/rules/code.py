"""Rules on the user's code, and its lines for other rules: A11 and A14."""

from collections.abc import Iterable

from keyhop.report.estimate import Estimate
from keyhop.report.facts import Absent, CodeFacts, CodeLine, Facts, StreamFacts
from keyhop.report.findings import Advice, Evidence, Price
from keyhop.report.rules.rule import FLAGS, Said, clear, found, missing, unknown
from keyhop.report.rules.shares import evidence, interval, share_of

RARE = 0.05
"""The share of an attribute's changes above which going back is intended."""
REVERSED = 0.005
TRANSITIONS = 1000
BOTH_IMAGES = "NEW_AND_OLD_IMAGES"


def lines_of(facts: Facts, *kinds: str) -> tuple[CodeLine, ...]:
    """Return the lines of the user's code that name this table, or no table."""
    if not isinstance(facts.code, CodeFacts):
        return ()
    return tuple(
        line
        for line in facts.code.lines
        if line.kind in kinds and line.table in ("", facts.table.name)
    )


def at(lines: Iterable[CodeLine]) -> tuple[Evidence, ...]:
    """Return each line as evidence."""
    return tuple(
        Evidence("code", line.text, n=1, where=f"{line.file}:{line.line}") for line in lines
    )


def whole_code(facts: Facts) -> bool:
    """Return whether code was given and all of it was read."""
    return isinstance(facts.code, CodeFacts) and facts.code.files > 0 and not facts.code.unreadable


def first_of(lines: tuple[CodeLine, ...]) -> str:
    """Name the first line and count the others, such as `orders.py:17 and 2 more`."""
    first = f"{lines[0].file}:{lines[0].line}"
    return first if len(lines) == 1 else f"{first} and {len(lines) - 1} more"


def status_changes(facts: Facts) -> Iterable[Said]:
    """Apply A11: a status is set without a condition.

    It is a suspicion, as only the owner knows which transitions are legal.
    """
    stream, lines = facts.stream, lines_of(facts, "status")
    signals: list[Evidence] = list(at(lines))
    rare: list[tuple[str, Estimate]] = []
    often: list[tuple[str, Estimate]] = []
    highest = 0.0
    if isinstance(stream, StreamFacts):
        for attribute, (transitions, back) in sorted(stream.reversals.items()):
            if not transitions:
                continue
            share = share_of(min(back, transitions), transitions, "records of the stream")
            highest = max(highest, share.high)
            what = f"changes of {attribute} that go back, rarely"
            signals.append(evidence("stream", what, share, REVERSED, window=stream.seconds))
            if back:
                (rare if share.value < RARE else often).append((attribute, share))
    if lines:
        summary = f"{first_of(lines)}: a status is set without a condition."
        return [found("low", summary, *signals, advice=_CONDITION)]
    if rare:
        attribute, share = rare[0]
        summary = f"{interval(share)} of the changes of {attribute} go back: by a late writer?"
        return [found("low", summary, *signals, advice=_CONDITION)]
    if often:
        attribute, share = often[0]
        summary = (
            f"{interval(share)} of the changes of {attribute} go back: so many seem to be meant."
        )
        return [found("info", summary, *signals)]
    if isinstance(stream, Absent):
        return [missing(stream, "stream")]
    if stream.view != BOTH_IMAGES:
        summary = f"The stream holds {stream.view or 'no images'}: changes need old and new images."
        return [unknown(summary, Price(0.0, f"a stream with {BOTH_IMAGES}"))]
    if stream.reversals and highest < REVERSED:
        return [clear("No status has gone back.", *signals)]
    summary = "Too few changes of a status were seen."
    return [unknown(summary, Price(0.0, "--stream 1h"), *signals)]


_CONDITION = Advice(
    ("P16",),
    (
        "Change a status under a condition on the one before: "
        'ConditionExpression="#status = :pending".',
        "A refused change is an answer: read again, and decide.",
    ),
)


def unprocessed(facts: Facts) -> Iterable[Said]:
    """Apply A14: the leftovers of a batch are not sent again.

    A batch may be answered in part, and only code shows what happens to the rest.
    """
    lines = lines_of(facts, "unprocessed")
    if lines:
        summary = f"{first_of(lines)}: what a batch leaves undone is not read."
        return [found("low", summary, *at(lines), advice=_AGAIN)]
    if isinstance(facts.code, Absent):
        return [missing(facts.code, "code")]
    if handed_on := lines_of(facts, "batch_write"):
        summary = (
            f"{first_of(handed_on)}: a batch's answer is handed on; who reads it does not show."
        )
        return [unknown(summary, Price(0.0, "a look at these lines"), *at(handed_on))]
    if not whole_code(facts):
        return [unknown("Not all of the code could be read.", Price(0.0, FLAGS["code"]))]
    signal = Evidence("code", "files that were read", facts.code.files, n=facts.code.files)
    return [clear("In the code that was read each batch's leftovers are looked at.", signal)]


_AGAIN = Advice(
    (),
    (
        "Send UnprocessedItems and UnprocessedKeys again, with waits that grow; or use boto3's "
        "batch_writer, which does.",
    ),
)
