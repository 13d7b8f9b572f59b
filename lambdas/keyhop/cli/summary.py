"""What a run came to: for people on stderr, for programs in the --report file."""

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhop import __version__
from keyhop.cli.progress import duration
from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION, read_dollars
from keyhop.dynamodb.usage import Usage
from keyhop.errors import CannotStart
from keyhop.jobs.local import LocalJob
from keyhop.jobs.model import NO_PROGRESS, price, usage_json
from keyhop.keys.verify import Verdict


@dataclass(slots=True)
class Summary:
    """The figures of a run. checking: what --verify read, on top of `usage`.

    fold: how logical keys are told, of a run that lists them. logical: that, physical_keys, and
    `folded`, how many of those were shards, once it is finished; until then `keys` are physical.
    """

    table: str
    index: str | None
    fold: Mapping[str, Any] | None = None
    method: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    segments: int = 0
    threads: int = 0
    keys: int = 0
    seconds: float = 0.0
    finished: bool = False
    output: str | None = None
    error: str | None = None
    verdict: Verdict | None = None
    checking: Usage | None = None
    logical: Mapping[str, Any] | None = None

    def follow(self, job: LocalJob) -> None:
        """Take over what is known of a run so far."""
        self.usage = job.reader.usage
        self.index = job.reader.source.index
        self.method, self.reason = job.how
        if job.is_begun:
            self.segments, self.threads = job.plan.segments, job.threads
            self.keys = job.progress.keys

    def to_json(self) -> dict[str, Any]:
        """The --report."""
        report: dict[str, Any] = {
            "table": self.table,
            "index": self.index,
            "method": self.method,
            "reason": self.reason,
            "segments": self.segments,
            "workers": self.threads,
            "keys": self.keys,
            **usage_json(self.usage),
            **price(self.usage.read_units),
            "seconds": round(self.seconds, 3),
            "finished": self.finished,
            "output": self.output,
            "error": self.error,
            "software_version": __version__,
        }
        logical = self.logical or self.fold
        if logical is not None:
            report["logical"] = dict(logical)
        if self.verdict is not None and self.checking is not None:
            report["verify"] = {**self.verdict.to_json(), **usage_json(self.checking)}
        return report

    def text(self) -> str:
        """For a person."""
        name = f"{self.table}/{self.index}" if self.index else self.table
        so_far = "" if self.finished else " so far"
        lines = [
            f"{self.keys:,} {self._kind}keys of {name}{so_far}, in {duration_exact(self.seconds)}",
            f"  method    {self.method}: {self.reason}",
            f"  read      {units_text(self.usage)}",
            f"  spread    {self.segments:,} segments, {self.threads} at once",
        ]
        if self.logical is not None and "folded" in self.logical:
            folded = f"{self.logical['folded']:,} of {self.logical['physical_keys']:,}"
            lines.append(f"  folded    {folded} physical keys: {_how(self.logical)}")
        if self.usage.throttles:
            reasons = ", ".join(f"{n:,} x {why}" for why, n in self.usage.throttles.most_common())
            lines.append(f"  throttled {reasons}")
        if self.usage.counters[NO_PROGRESS]:
            lines.append(f"  hops without progress: {self.usage.counters[NO_PROGRESS]:,}")
        if self.output:
            lines.append(f"  keys in   {self.output}")
        if self.verdict is not None and self.checking is not None:
            lines.extend(_verdict_lines(self.verdict, self.checking))
        return "\n".join(lines)

    @property
    def _kind(self) -> str:
        if self.logical is None:
            return "" if self.fold is None else "physical "
        return "logical " if "folded" in self.logical else "physical "


def _how(logical: Mapping[str, Any]) -> str:
    """Which keys are folded, in words."""
    suffix = f"{logical['separator']}1 to {logical['separator']}1000"
    if logical["metadata"] is None:
        return f"every key that ends in {suffix} is taken for a shard"
    return f"those that end in {suffix} and that {logical['metadata']} knows as shards"


def units_text(usage: Usage) -> str:
    """Read units, requests and dollars, with the date of the price."""
    return (
        f"{usage.read_units:,.1f} RRU in {usage.requests:,} requests: "
        f"${read_dollars(usage.read_units):,.6f} (on demand, {PRICE_REGION}, {PRICE_DATE})"
    )


def duration_exact(seconds: float) -> str:
    """A time span; short ones to the tenth."""
    return f"{seconds:.1f} s" if seconds < 90 else duration(seconds)


def _verdict_lines(verdict: Verdict, checking: Usage) -> list[str]:
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
