"""The input of ReportKeys. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from keyhop.checks import Check, Must, Truth, number, one_of, text, whole
from keyhop.jobs.request import A_RUN, A_TABLE, READ_UNITS, Request, RunInput, accepting
from keyhop.report.candidates import why_wrong
from keyhop.report.findings import SEVERITIES
from keyhop.report.forms import SHOW_KEYS

THROTTLED = "throttled"
"""Accepts reading a table with a key range that was throttled within the last hour."""

DEFAULT_UNITS = 2_000.0
"""The default read units of a sample; see docs/internals/report-statistics.md for its accuracy."""

LONGEST_STREAM_SECONDS = 3_600.0
MOST_CANDIDATES = 10
MOST_CONFIRMED = 10

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
LIKE_A_TIME = 'a time as "14d", "6h" or "30m"'
_DURATION = re.compile(r"[1-9][0-9]{0,5}[smhdw]")

_TEXTS = Must(
    Check(
        lambda value: (
            isinstance(value, list)
            and all(isinstance(element, str) and element for element in value)
        ),
        {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": MOST_CANDIDATES},
    ),
    "a list of texts",
    tuple,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput(RunInput):
    """The input of ReportKeys."""

    table: Annotated[str, A_TABLE, "a table of the deployment"]
    max_read_units: Annotated[
        float | None,
        READ_UNITS,
        f"the maximum read units of the sample; {DEFAULT_UNITS:g} by default",
    ] = None
    exhaustive: Annotated[Truth, "look at every partition key instead of a sample"] = False
    control_plane_only: Annotated[Truth, "read nothing of the table's data"] = False
    since: Annotated[
        str,
        Must(text(_DURATION), LIKE_A_TIME),
        "how far back metrics and Contributor Insights are looked at; 14d if left out",
    ] = "14d"
    stream: Annotated[
        float | None,
        Must(number(1, LONGEST_STREAM_SECONDS), "a number of seconds, up to 3,600", float),
        "the time for which the table's stream is read; by default it is not read",
    ] = None
    insights: Annotated[
        Truth, "ask Contributor Insights, where it is on, for the most accessed keys"
    ] = False
    peak_writes: Annotated[
        float | None,
        Must(number(0), "a number of write units a second", float),
        "the expected peak; by default the measured one",
    ] = None
    candidates: Annotated[
        tuple[str, ...], _TEXTS, "templates of other partition keys to assess"
    ] = ()
    confirm: Annotated[
        int,
        Must(whole(0, MOST_CONFIRMED), f"a whole number up to {MOST_CONFIRMED}", int),
        "the number of the largest collections that more reads confirm",
    ] = 3
    show_keys: Annotated[
        Any,
        Must(one_of(*SHOW_KEYS), '"digest", "prefix" or "full"'),
        "how keys are written; digest by default",
    ] = "digest"
    fail_on: Annotated[
        Any,
        Must(one_of(*SEVERITIES), '"high", "medium", "low" or "info"'),
        "the execution fails for a finding of this severity or worse; by default it never does",
    ] = None
    strict: Annotated[Truth, "the execution fails if a rule remains unknown"] = False
    accept: Annotated[
        tuple[str, ...],
        accepting(THROTTLED),
        f"{THROTTLED}: read the table even if its key ranges were throttled within the last hour",
    ] = ()
    baseline: Annotated[str | None, A_RUN, "report the changes since this run's report"] = None

    @classmethod
    def of(cls, request: Request) -> "ReportInput":
        """Return the input from which the request of a sample was made."""
        options = request.options["report"]
        lists = {name: tuple(options[name]) for name in ("candidates", "accept")}
        return cls(**{**options, **lists})

    @property
    def since_seconds(self) -> float:
        """Return the time before now that metrics are looked at."""
        return seconds_of(self.since)

    @property
    def read_units(self) -> float | None:
        """Return the maximum read units of the sample; None for no limit."""
        return None if self.exhaustive else self.max_read_units or DEFAULT_UNITS

    def settings(self) -> dict[str, Any]:
        """Return the settings that affect what the report says, by name."""
        skipped = {"table", "baseline", "resume", "scheduled", "dry_run"}
        all_settings = {**asdict(self), "max_read_units": self.read_units}
        return {
            name: value
            for name, value in sorted(all_settings.items())
            if name not in skipped and value not in (None, ())
        }

    def contradictions(self, called: Callable[[str], str]) -> list[str]:
        """RunInput.contradictions."""
        control, exhaustive = called("control_plane_only"), called("exhaustive")
        units, candidates = called("max_read_units"), called("candidates")
        rules = {
            f"{exhaustive} reads all keys, {control} none: give one of them": self.exhaustive
            and self.control_plane_only,
            f"{exhaustive} has no {units}: its cost is not known in advance": self.exhaustive
            and self.max_read_units is not None,
            f"{control} reads no data: leave {candidates} out": self.control_plane_only
            and bool(self.candidates),
            f"there are more than {MOST_CANDIDATES} {candidates}": len(self.candidates)
            > MOST_CANDIDATES,
        }
        broken = [sentence for sentence, is_broken in rules.items() if is_broken]
        return broken + [wrong for candidate in self.candidates if (wrong := why_wrong(candidate))]

    def _request(self, job_input: Mapping[str, Any]) -> Request:
        """RunInput._request: the request of the sample, with this input in its options."""
        return Request(
            self.table,
            "report",
            options={
                "units": self.read_units,
                "show_keys": self.show_keys,
                "report": {
                    **asdict(self),
                    "candidates": [*self.candidates],
                    "accept": [*self.accept],
                },
            },
            format="jsonl",
            job_input=job_input,
            **{**self._of_every_run(), "max_read_units": self.read_units},
        )


def is_time(text: str) -> bool:
    """Return whether a text is a duration that `seconds_of` reads."""
    return _DURATION.fullmatch(text) is not None


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration such as 14d, 6h or 30m."""
    return float(int(duration[:-1]) * _SECONDS[duration[-1]])
