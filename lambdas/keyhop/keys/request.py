"""The input of EnumerateKeys, and the request of a list of keys. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from keyhop.checks import Check, Must, Truth, is_number, one_of, text, whole
from keyhop.jobs.request import (
    A_METHOD,
    A_TABLE,
    INDEX_NAME,
    TABLE_NAME,
    Request,
    RunInput,
    accepting,
)
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.sharding.key.schema import DEFAULT_SEPARATOR

STALE_INDEX = "stale-index"
"""Accepts that a key index is read that is not trusted."""

_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")
_SHARE = Check(
    lambda value: is_number(value) and 0 < value <= 1,
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysInput(RunInput):
    """The input of EnumerateKeys."""

    table: Annotated[str, A_TABLE, "a table of the deployment"]
    index: Annotated[
        str | None,
        Must(text(INDEX_NAME), "the name of an index"),
        "list the keys of this index; one worker reads all of it",
    ] = None
    method: Annotated[
        str,
        A_METHOD,
        "skip hops from key to key, scan reads everything, index reads the key index; auto chooses",
    ] = "auto"
    segments: Annotated[
        int | None,
        Must(whole(1, MOST_SEGMENTS), f"a whole number from 1 to {MOST_SEGMENTS:,}", int),
        "the number of segments; planned by default",
    ] = None
    file_format: Annotated[
        Any,
        Must(one_of("jsonl", "csv"), '"jsonl" or "csv"'),
        "the format of the parts; jsonl by default",
    ] = None
    verify_share: Annotated[
        float | None,
        Must(_SHARE, "a number above 0, up to 1"),
        "afterwards, read this share of the table by plain Scans, and compare",
    ] = None
    accept: Annotated[
        tuple[str, ...],
        accepting(STALE_INDEX),
        f"with method index, {STALE_INDEX}: read the key index even if it may be out of date",
    ] = ()
    logical: Annotated[Truth, "list logical keys: /f.txt once for /f.txt_1, /f.txt_2, ..."] = False
    separator: Annotated[
        str | None,
        Must(text(_SEPARATOR), "1 to 16 printable ASCII characters, with no digits and no spaces"),
        f"with logical: between a logical key and its shard; {DEFAULT_SEPARATOR} by default",
    ] = None
    metadata: Annotated[
        str | None,
        Must(text(TABLE_NAME), "the name of a table"),
        "with logical: fold only the shards that this shard-metadata table of the deployment has",
    ] = None

    def contradictions(self, called: Callable[[str], str]) -> list[str]:
        index, logical, separator, metadata, method, accept = map(
            called, ("index", "logical", "separator", "metadata", "method", "accept")
        )
        dry_run, verify, resume = map(called, ("dry_run", "verify_share", "resume"))
        by_index = self.method == "index"
        rules = {
            f"{accept} {STALE_INDEX} is for {method} index: give that too": self.accept
            and not by_index,
            f"{dry_run} samples the table; the status of the key index describes that": (
                by_index and self.dry_run
            ),
            f"{separator} and {metadata} are for {logical}: give that too": (
                self.separator is not None or self.metadata is not None
            )
            and not self.logical,
            f"{logical} folds the keys of the table: leave {index} out": self.logical
            and self.index,
            f"{dry_run} samples physical keys: leave {logical} out": self.logical and self.dry_run,
            f"{method} index reads the key index: leave {index} out": by_index and self.index,
            f"{verify} does not work with {method} index: verify the key index instead": (
                by_index and self.verify_share
            ),
            f"{verify} does not work with {index}: plain Scans read that already": self.index
            and self.verify_share is not None,
            f"{resume} and {dry_run} cannot be combined: a run that has begun has a plan already": (
                self.resume and self.dry_run
            ),
        }
        return [sentence for sentence, is_broken in rules.items() if is_broken]

    def _request(self, job_input: Mapping[str, Any]) -> Request:
        return keys_request(
            self.table,
            logical=self.logical,
            separator=self.separator,
            metadata=self.metadata,
            accept=self.accept,
            index=self.index,
            method=self.method,
            segments=self.segments,
            format=self.file_format,
            verify_share=self.verify_share,
            job_input=job_input,
            **self._of_every_run(),
        )


def keys_request(
    table: str,
    *,
    logical: bool = False,
    separator: str | None = None,
    metadata: str | None = None,
    accept: Sequence[str] = (),
    first: Sequence[str] = (),
    **more: Any,
) -> Request:
    """Return the request of a list of keys; for `first`, see KeysTask."""
    options: dict[str, Any] = {"accept": [*accept]} if accept else {}
    if first:
        options["first"] = [*first]
    named = {"logical": logical or None, "separator": separator, "metadata": metadata}
    if logical:
        options["fold"] = {"separator": separator or DEFAULT_SEPARATOR, "metadata": metadata}
    flags = {name: value for name, value in named.items() if value is not None}
    return Request(table, "keys", options=options, wanted=flags, **more)
