"""The inputs of RekeyBackfill, RekeyVerify and RekeyCutOver. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, cast

from keyhop.checks import Must, Truth, number, one_of, read
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.dynamodb.values import KeyType
from keyhop.errors import CannotStart
from keyhop.jobs.request import A_TABLE, Request, RunInput, accepting
from keyhop.rekey.control import Side

BACKFILL, VERIFY, DIGESTS = "rekey_backfill", "rekey_verify", "rekey_digests"
"""The tasks' names. A verification makes the digests first."""

LIKE = '{"rekey": "OrdersByTenant"}'

LEAST_FREEZE_SECONDS, MOST_FREEZE_SECONDS = 6.0, 20.0
"""The limits of a freeze: it includes two leases and the drain, and routers wait for 25 seconds."""

NO_STREAM, SHARDS = "no-stream", "shards"
"""Accept that a copy misses concurrent writes, or that its source is a sharded table."""

UNMAPPED, STRAGGLERS = "unmapped", "stragglers"
"""Accept the loss of items by a change of the serving table."""

KEY_TYPES = ("S", "N", "B")

_DESTINATION = "the destination of the re-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class _RekeyInput(RunInput):
    """The input of a run of a re-key."""

    LIKE: ClassVar[str] = LIKE

    rekey: Annotated[str, A_TABLE, _DESTINATION]

    def contradictions(self, called: Callable[[str], str]) -> list[str]:
        """Return the contradictions between the fields (RunInput.contradictions)."""
        if not self.dry_run or self.resume is None:
            return []
        return [f"{called('dry_run')} is for a new run: leave it, or {called('resume')}, out"]

    def _request_for(self, task: str, job_input: Mapping[str, Any], **options: Any) -> Request:
        return Request(
            self.rekey,
            task,
            options={"rekey": self.rekey, **options},
            format="jsonl",
            job_input=job_input,
            named_by="rekey",
            **self._of_every_run(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillInput(_RekeyInput):
    """The input of RekeyBackfill."""

    max_write_rate: Annotated[
        float,
        Must(number(1), "a number of write units a second, at least 1", float),
        "the maximum write units a second, of all workers together; "
        f"{DEFAULT_WRITE_RATE:g} by default; `keyhop rekey throttle` changes it during the copy",
    ] = DEFAULT_WRITE_RATE
    accept: Annotated[
        tuple[str, ...],
        accepting(NO_STREAM, SHARDS),
        f"{NO_STREAM}: copy although nothing replicates, and let a verification find what is "
        f"written meanwhile; {SHARDS}: the source is a sharded table, and the template handles the "
        "suffixes of its shards",
    ] = ()

    def _request(self, job_input: Mapping[str, Any]) -> Request:
        """Return the request of the run (RunInput._request)."""
        rate, accept = self.max_write_rate, [*self.accept]
        return self._request_for(BACKFILL, job_input, max_write_rate=rate, accept=accept)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyInput(_RekeyInput):
    """The input of RekeyVerify."""

    repair: Annotated[Truth, "repair what differs; otherwise only count it"] = True
    share: Annotated[
        float | None,
        Must(number(1e-6, 1), "a number from 0.000001 to 1"),
        "compare only this share of both tables, drawn at random; such a verification opens no "
        "cutover",
    ] = None

    def _request(self, job_input: Mapping[str, Any]) -> Request:
        """Return the request of the run (RunInput._request)."""
        return self._request_for(VERIFY, job_input, repair=self.repair, share=self.share)


@dataclass(frozen=True, slots=True)
class CutOverInput:
    """The input of RekeyCutOver."""

    rekey: Annotated[str, A_TABLE, _DESTINATION]
    to: Annotated[
        Side,
        Must(one_of("source", "destination"), '"destination" or "source"'),
        "the table that is to serve: the destination by a cutover, the source by a rollback",
    ] = "destination"
    accept: Annotated[
        tuple[str, ...],
        accepting(UNMAPPED, STRAGGLERS),
        f"{UNMAPPED}: lose the items that cannot be mapped back; {STRAGGLERS}: overwrite the items "
        "that were written past the routers with those of the serving table",
    ] = ()
    expect: Annotated[
        int | None,
        Must(number(0, 100_000), "a whole number, 0 or more"),
        "how many routers must have reported; as the control item says if left out",
    ] = None
    freeze_limit: Annotated[
        float | None,
        Must(
            number(LEAST_FREEZE_SECONDS, MOST_FREEZE_SECONDS),
            f"seconds, from {LEAST_FREEZE_SECONDS:g} to {MOST_FREEZE_SECONDS:g}",
        ),
        "go back if writes would wait for longer; if left out as the last time, at first 10",
    ] = None
    dry_run: Annotated[Truth, "only look at the gates"] = False

    @staticmethod
    def parse(job_input: object) -> "CutOverInput":
        """Return the input of an execution; raise InvalidInput if it is wrong."""
        return read(CutOverInput, job_input, LIKE)


def key_attribute(text: str) -> tuple[str, KeyType | None]:
    """Return the name and the type in NAME, NAME:S, NAME:N or NAME:B; raise CannotStart."""
    name, colon, type_ = text.rpartition(":")
    if not colon:
        return text, None
    if type_ not in KEY_TYPES:
        raise CannotStart(
            f"{text!r} has the type {type_!r}, and a key's type is {', '.join(KEY_TYPES)}; if the "
            f"name has a colon, write {text}:S."
        )
    if not name:
        raise CannotStart(f"{text!r} is not NAME or NAME:TYPE, such as tenant:S.")
    return name, cast(KeyType, type_)


def digests_of(request: Request) -> Request:
    """Return the request of the run that must precede a verification."""
    return replace(request, task=DIGESTS)


def with_digests(request: Request, run: str) -> Request:
    """Return the request of the verification after the digests; it reads only differences."""
    options = {**request.options, "digests": run}
    return replace(request, options=options, max_read_rate=None, max_read_units=None)
