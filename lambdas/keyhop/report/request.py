"""What a person gives ReportKeys: the input of an execution, and the command's flags. Pure."""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from keyhop.checks import (
    Check,
    Must,
    Truth,
    camel,
    number,
    one_of,
    read,
    text,
    whole,
    without_origin,
    wrong_input,
)
from keyhop.jobs.request import (
    A_READ_RATE,
    A_RUN,
    A_TABLE,
    DOLLARS,
    READ_UNITS,
    WORKERS,
    Request,
)
from keyhop.report.candidates.template import why_wrong
from keyhop.report.findings import SEVERITIES
from keyhop.report.shown import SHOW_KEYS

LIKE = '{"table": "Orders"}'
DEFAULT_UNITS = 3_000.0
"""A quarter of a hundredth of a dollar; what it brings is in docs/report-statistics.md."""

LONGEST_STREAM_SECONDS = 3_600.0
MOST_CANDIDATES = 10
MOST_CONFIRMED = 10

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
LIKE_A_TIME = 'a time as "14d", "6h" or "30m"'
_DURATION = re.compile(r"[1-9][0-9]{0,5}[smhdw]")

_TEXTS = Must(
    Check(
        lambda value: (
            isinstance(value, list) and all(isinstance(one, str) and one for one in value)
        ),
        {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": MOST_CANDIDATES},
    ),
    "a list of texts",
    tuple,
)


@dataclass(frozen=True, slots=True)
class ReportInput:
    """The input of ReportKeys."""

    table: Annotated[str, A_TABLE, "a table of the deployment"]
    max_read_units: Annotated[
        float, READ_UNITS, f"that the sample may spend; {DEFAULT_UNITS:g} if left out"
    ] = DEFAULT_UNITS
    max_read_rate: Annotated[
        float | None, A_READ_RATE, "for all workers together; no limit if left out"
    ] = None
    exhaustive: Annotated[
        Truth, "look at every partition key, and not at a sample: without maxReadUnits"
    ] = False
    control_plane_only: Annotated[Truth, "read nothing of the table's data"] = False
    since: Annotated[
        str,
        Must(text(_DURATION), LIKE_A_TIME),
        "how far back metrics and Contributor Insights are looked at; 14d if left out",
    ] = "14d"
    stream: Annotated[
        float | None,
        Must(number(1, LONGEST_STREAM_SECONDS), "a number of seconds, up to 3,600", float),
        "read the table's stream for so long; not at all if left out",
    ] = None
    insights: Annotated[
        Truth, "ask Contributor Insights, where it is on, for the most accessed keys"
    ] = False
    peak_writes: Annotated[
        float | None,
        Must(number(0), "a number of write units a second", float),
        "that are expected; what has been seen if left out",
    ] = None
    candidates: Annotated[
        tuple[str, ...], _TEXTS, "templates of other partition keys, to be judged"
    ] = ()
    confirm: Annotated[
        int,
        Must(whole(0, MOST_CONFIRMED), f"a whole number up to {MOST_CONFIRMED}", int),
        "how many of the largest collections are looked at again, by more reads",
    ] = 3
    show_keys: Annotated[
        Any,
        Must(one_of(*SHOW_KEYS), '"digest", "prefix" or "full"'),
        "how keys are written; digest if left out",
    ] = "digest"
    fail_on: Annotated[
        Any,
        Must(one_of(*SEVERITIES), '"high", "medium", "low" or "info"'),
        "the execution fails for a finding so severe, or worse; never if left out",
    ] = None
    strict: Annotated[Truth, "the execution fails if a rule remains unknown"] = False
    anyway: Annotated[
        Truth, "read though key ranges of the table were throttled within the last hour"
    ] = False
    baseline: Annotated[str | None, A_RUN, "tell what has changed since this run's report"] = None
    max_concurrency: Annotated[int | None, WORKERS, "workers at once, at most"] = None
    max_cost: Annotated[
        float | None,
        DOLLARS,
        "refused if it may cost more; the deployment's maxCost if left out",
    ] = None
    plan_only: Annotated[Truth, "read nothing but a few pages, and end with the estimate"] = False
    resume: Annotated[str | None, A_RUN, "go on with this run"] = None
    scheduled: Annotated[Truth, "by a schedule: an input that is refused raises the alarm"] = False

    @classmethod
    def of(cls, request: Request) -> "ReportInput":
        """What was asked for, from the job that samples the data."""
        asked = request.options["report"]
        return cls(**{**asked, "candidates": tuple(asked["candidates"])})

    @property
    def since_seconds(self) -> float:
        """How far back to look."""
        return seconds_of(self.since)

    @property
    def read_units(self) -> float | None:
        """That the sample may spend; None for no limit."""
        return None if self.exhaustive else self.max_read_units


def parse(given: object) -> Request:
    """The request in an execution's input; raises InvalidInput, which names all that is wrong."""
    asked = read(ReportInput, given, LIKE)
    is_given = isinstance(given, dict) and "maxReadUnits" in given
    return report_request(asked, camel, without_origin(given), is_given)


def report_request(
    asked: ReportInput,
    called: Callable[[str], str],
    given: Any = None,
    units_given: bool = False,
) -> Request:
    """The job that samples the data. Its options have all that was asked for under `report`, by the
    fields of ReportInput.

    called: how a field is called where it was asked for. units_given: whether max_read_units was.
    Raises InvalidInput.
    """
    if problems := contradictions(asked, called, units_given):
        raise wrong_input(problems)
    return Request(
        table=asked.table,
        task="report",
        options={
            "units": asked.read_units,
            "show_keys": asked.show_keys,
            "report": {**asdict(asked), "candidates": list(asked.candidates)},
        },
        max_concurrency=asked.max_concurrency,
        max_read_rate=asked.max_read_rate,
        max_read_units=asked.read_units,
        max_cost=asked.max_cost,
        format="jsonl",
        plan_only=asked.plan_only,
        resume=asked.resume,
        given=given or {},
    )


def contradictions(
    asked: ReportInput, called: Callable[[str], str], units_given: bool = False
) -> list[str]:
    """What does not go together."""
    control, exhaustive = called("control_plane_only"), called("exhaustive")
    units = called("max_read_units")
    rules = {
        f"{exhaustive} reads all keys, {control} none: give one of them": asked.exhaustive
        and asked.control_plane_only,
        f"{exhaustive} has no {units}: its end cannot be known before": asked.exhaustive
        and units_given,
        f"{control} reads no data: leave {called('candidates')} out": asked.control_plane_only
        and bool(asked.candidates),
        f"there are more than {MOST_CANDIDATES} {called('candidates')}": len(asked.candidates)
        > MOST_CANDIDATES,
    }
    broken = [sentence for sentence, is_broken in rules.items() if is_broken]
    return broken + [wrong for one in asked.candidates if (wrong := why_wrong(one))]


def is_time(text: str) -> bool:
    """Whether it is one that `seconds_of` takes."""
    return _DURATION.fullmatch(text) is not None


def seconds_of(duration: str) -> float:
    """Of a text as 14d, 6h, 30m."""
    return float(int(duration[:-1]) * _SECONDS[duration[-1]])
