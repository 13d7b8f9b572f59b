"""What a run came to: for people on stderr, for programs in the --report file."""

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhop import __version__
from keyhop.cli.logical import how
from keyhop.cli.progress import duration
from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION, read_dollars
from keyhop.dynamodb.usage import Tally
from keyhop.errors import CannotStart
from keyhop.jobs.layout import Choice
from keyhop.jobs.model import price
from keyhop.keys.verify import Verdict


@dataclass(slots=True)
class Summary:
    """The figures of a run. checking: what --verify read, on top of `tally`.

    logical: of a run that lists logical keys: how they were told, physical_keys, and, once it is
    finished, `folded`, how many of those were shards; until then `keys` are physical ones too.
    """

    table: str
    index: str | None
    choice: Choice
    tally: Tally
    segments: int = 0
    workers: int = 0
    keys: int = 0
    seconds: float = 0.0
    finished: bool = False
    output: str | None = None
    error: str | None = None
    verdict: Verdict | None = None
    checking: Tally | None = None
    logical: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The --report."""
        report: dict[str, Any] = {
            "table": self.table,
            "index": self.index,
            "method": self.choice.method,
            "reason": self.choice.reason,
            "segments": self.segments,
            "workers": self.workers,
            "keys": self.keys,
            **self.tally.to_json(),
            **price(self.tally.units),
            "seconds": round(self.seconds, 3),
            "finished": self.finished,
            "output": self.output,
            "error": self.error,
            "software_version": __version__,
        }
        if self.logical is not None:
            report["logical"] = dict(self.logical)
        if self.verdict is not None and self.checking is not None:
            report["verify"] = {**self.verdict.to_json(), **self.checking.to_json()}
        return report

    def text(self) -> str:
        """For a person."""
        name = f"{self.table}/{self.index}" if self.index else self.table
        so_far = "" if self.finished else " so far"
        lines = [
            f"{self.keys:,} {self._kind}keys of {name}{so_far}, in {duration_exact(self.seconds)}",
            f"  method    {self.choice.method}: {self.choice.reason}",
            f"  read      {units_text(self.tally)}",
            f"  spread    {self.segments:,} segments, {self.workers} at once",
        ]
        if self.logical is not None and "folded" in self.logical:
            told = f"{self.logical['folded']:,} of {self.logical['physical_keys']:,} physical keys"
            lines.append(f"  folded    {told}: {how(self.logical)}")
        if self.tally.throttles:
            reasons = ", ".join(f"{n:,} x {why}" for why, n in self.tally.throttles.most_common())
            lines.append(f"  throttled {reasons}")
        if self.tally.no_progress:
            lines.append(f"  hops without progress: {self.tally.no_progress:,}")
        if self.output:
            lines.append(f"  keys in   {self.output}")
        if self.verdict is not None and self.checking is not None:
            lines.extend(_verdict_lines(self.verdict, self.checking))
        return "\n".join(lines)

    @property
    def _kind(self) -> str:
        if self.logical is None:
            return ""
        return "logical " if "folded" in self.logical else "physical "


def units_text(tally: Tally) -> str:
    """Read units, requests and dollars, with the date of the price."""
    return (
        f"{tally.units:,.1f} RRU in {tally.requests:,} requests: ${read_dollars(tally.units):,.6f} "
        f"(on demand, {PRICE_REGION}, {PRICE_DATE})"
    )


def duration_exact(seconds: float) -> str:
    """A time span; short ones to the tenth."""
    return f"{seconds:.1f} s" if seconds < 90 else duration(seconds)


def _verdict_lines(verdict: Verdict, checking: Tally) -> list[str]:
    lines = [
        f"  checked   {verdict.share:.1%} of the hash space ({verdict.segments:,} segments, "
        f"{verdict.keys:,} keys), for {units_text(checking)}",
        f"            missing {verdict.missing:,}, surplus {verdict.surplus:,}",
    ]
    if verdict.appeared:
        lines.append(
            f"            {verdict.appeared:,} more appeared since the run: a second skip-scan "
            f"finds them"
        )
    for kind, keys in verdict.examples.items():
        lines.append(f"            {kind}: {'; '.join(json.dumps(key) for key in keys)}")
    return lines


def check_report_path(path: str) -> None:
    """Raises CannotStart if a report could not be written there."""
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise CannotStart(
            f"--report {path} cannot be written: choose a file in a directory of yours."
        )


def write_report(path: str, report: Mapping[str, Any]) -> None:
    """Write a report: a file as a whole, anything else (a pipe, /dev/stderr) as it is."""
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    with aside.open("x", encoding="utf-8") as file:
        file.write(text)
    aside.replace(target)
