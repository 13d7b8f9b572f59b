"""What a command came to: for people on stderr, for programs in the --report file."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keyhop.cli.progress import duration
from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION, read_dollars
from keyhop.errors import CannotStart


def summary_text(report: Mapping[str, Any]) -> str:
    """The --report of `keyhop keys`, for a person."""
    return "\n".join(_summary_lines(report))


def _summary_lines(report: Mapping[str, Any]) -> Iterator[str]:
    name = f"{report['table']}/{report['index']}" if report["index"] else report["table"]
    so_far = "" if report["finished"] else " so far"
    seconds = report["seconds"]
    lasted = f"{seconds:.1f} s" if seconds < 90 else duration(seconds)
    fold = report.get("logical", {})
    # Until a run that lists logical keys has folded some, its keys are physical ones.
    is_folded = "folded" in fold
    kind = "logical " if is_folded else "physical " if fold else ""
    yield f"{report['keys']:,} {kind}keys of {name}{so_far}, in {lasted}"
    yield f"  method    {report['method']}: {report['reason']}"
    yield f"  read      {_read_text(report)}"
    yield f"  spread    {report['segments']:,} segments, {report['workers']} at once"
    if is_folded:
        folded = f"{fold['folded']:,} of {fold['physical_keys']:,}"
        yield f"  folded    {folded} physical keys: {_fold_text(fold)}"
    if report["throttles"]:
        reasons = sorted(report["throttles"].items(), key=lambda entry: -entry[1])
        yield f"  throttled {', '.join(f'{count:,} x {why}' for why, count in reasons)}"
    if report["no_progress_hops"]:
        yield f"  hops without progress: {report['no_progress_hops']:,}"
    if report["output"]:
        yield f"  keys in   {report['output']}"
    if "verify" in report:
        yield from _verdict_lines(report["verify"])


def _fold_text(fold: Mapping[str, Any]) -> str:
    suffix = f"{fold['separator']}1 to {fold['separator']}1000"
    if fold["metadata"] is None:
        return f"every key that ends in {suffix} is taken for a shard"
    return f"those that end in {suffix} and that {fold['metadata']} knows as shards"


def _read_text(usage: Mapping[str, Any]) -> str:
    return (
        f"{usage['read_units']:,.1f} RRU in {usage['requests']:,} requests: "
        f"${read_dollars(usage['read_units']):,.6f} (on demand, {PRICE_REGION}, {PRICE_DATE})"
    )


def _verdict_lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"  checked   {verdict['share']:.1%} of the hash space ({verdict['segments']:,} segments, "
        f"{verdict['keys']:,} keys), for {_read_text(verdict)}"
    )
    yield f"            missing {verdict['missing']:,}, surplus {verdict['surplus']:,}"
    if verdict["appeared"]:
        yield (
            f"            {verdict['appeared']:,} more appeared since the run: a second skip-scan "
            f"finds them"
        )
    for kind, keys in verdict["examples"].items():
        yield f"            {kind}: {'; '.join(map(json.dumps, keys))}"


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
