"""One run of `keyhop keys`: the keys on standard output or in files, a report, an exit status."""

import random
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keyhop import __version__
from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.local_runner import work
from keyhop.cli.options import Options
from keyhop.cli.session import Stop
from keyhop.cli.summary import summary_text, write_report
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError
from keyhop.jobs.dedup import KnownKeys
from keyhop.jobs.formats import Encoder
from keyhop.jobs.local import LocalJob
from keyhop.jobs.model import Part, price, usage_json
from keyhop.keys.logical import Fold, keys_of, listed
from keyhop.keys.verify import verify
from keyhop.sharding.logical_keys import fold_of


class Printed:
    """Keys on standard output, a page at a time (jobs.worker.Output)."""

    attempt = ""

    def __init__(self, encoder: Encoder, fold: Fold | None = None) -> None:
        self.physical = 0
        self.folded = 0
        self.memory: KnownKeys | None = None
        self._encoder = encoder
        self._fold = fold
        self._printed = KnownKeys() if fold is not None else None
        self._out = sys.stdout.buffer
        self._out.write(encoder.header())

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Print those keys that were not printed before; raises BrokenPipeError."""
        if self._fold is not None:
            logical = self._fold(keys)
            self.physical += len(keys)
            self.folded += sum(key != other for key, other in zip(keys, logical, strict=True))
            keys = logical
        memory = self._printed or self.memory
        if memory is not None:
            keys = memory.new_among(keys)
        self._out.write(self._encoder.encode(keys))
        self._out.flush()
        return len(keys)

    def close(self) -> tuple[Part, ...]:
        """There are no parts."""
        return ()


class KeysRun:
    """A prepared job, from its beginning to the exit status.

    is_kept: whether keys go to files, committed slice by slice; if these are not the user's, to
    standard output as well. Otherwise they only go there.
    """

    def __init__(self, job: LocalJob, options: Options, stop: Stop, is_kept: bool) -> None:
        self._job = job
        self._options = options
        self._stop = stop
        self._is_kept = is_kept
        self._began = time.monotonic()
        self._is_finished = False
        self._is_checked = not options.verify
        self._figures: dict[str, Any] = {}

    def run(self) -> int:
        """Do the work, then say what it came to, whatever happened; returns the exit status."""
        options, job = self._options, self._job
        status, message = DONE, None
        try:
            job.begin()
            if self._is_kept:
                self._keep()
            else:
                self._print()
        except Stopped:
            pass
        except KeyhopError as error:
            if isinstance(error, CannotStart) and not job.reader.usage.requests:
                raise
            message = str(error)
            status = BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
            hint = "" if isinstance(error, BrokenPromise) else self._resume_hint()
            print(f"keyhop: {message} {hint}".rstrip(), file=sys.stderr)
        if self._stop.event.is_set() and not (self._is_finished and self._is_checked):
            status, message = self._stop.status, "interrupted"
            print(f"keyhop: Interrupted. {self._resume_hint()}", file=sys.stderr)
        report = self._report(message)
        if status == DONE and report.get("verify", {}).get("missing"):
            status = KEYS_MISSING
        if not options.quiet and (status == DONE or job.reader.usage.requests):
            print(summary_text(report), file=sys.stderr)
        if options.report:
            write_report(options.report, report)
        return status

    def _report(self, error: str | None) -> dict[str, Any]:
        """The --report: what this process knows of the run, unless its figures are known."""
        job, fold, usage = self._job, self._fold, self._job.reader.usage
        method, reason = job.how
        path = self._options.output if job.is_begun else None
        return {
            "table": job.reader.source.name,
            "index": job.reader.source.index,
            "method": method,
            "reason": reason,
            "segments": job.plan.segments if job.is_begun else 0,
            "workers": job.threads if job.is_begun else 0,
            "keys": job.progress.keys if job.is_begun else 0,
            **usage_json(usage),
            **price(usage.read_units),
            "seconds": round(time.monotonic() - self._began, 3),
            "output": path and str(Path(path)),
            "software_version": __version__,
            **({} if fold is None else {"logical": fold}),
            **self._figures,
            "finished": self._is_finished,
            "error": error,
        }

    @property
    def _fold(self) -> Mapping[str, Any] | None:
        """How logical keys are recognised, of a run that lists them."""
        return self._job.request.options.get("fold")

    def _print(self) -> None:
        job, fold = self._job, self._fold
        space = job.reader.source.space
        output = Printed(
            Encoder(self._options.format or "text", space),
            None if fold is None else fold_of(job.connection, space, fold, ""),
        )
        try:
            work(job, self._options, output=output)
            self._is_finished = job.finish()[1].summary["finished"]
        finally:
            if fold is not None:
                counts = {"physical_keys": output.physical, "folded": output.folded}
                self._figures["logical"] = {**fold, **counts}

    def _keep(self) -> None:
        job = self._job
        prints = not self._options.output
        folds = "fold" in job.plan.options
        encoder = Encoder(job.plan.format, job.plan.space)
        try:
            work(job, self._options, copy=Printed(encoder) if prints and not folds else None)
        finally:
            manifest = job.finish()[1].summary
            of_manifest = ("run", "format", "segments", "started", "ended", "parts")
            self._figures = {name: manifest[name] for name in manifest if name not in of_manifest}
            self._is_finished = manifest["finished"]
        if self._is_finished and prints and folds:
            self._print_logical(Printed(encoder))
        if self._is_finished and self._options.verify:
            self._verify()

    def _print_logical(self, output: Printed) -> None:
        """The logical keys of a run that is read, to standard output."""
        self._is_finished = False
        for keys in keys_of(self._job.journal, self._job.plan, listed(self._job.journal)):
            if self._stop.event.is_set():
                raise Stopped
            output.write(0, keys)
        self._is_finished = True

    def _verify(self) -> None:
        job = self._job
        before = job.reader.usage.copy()
        share, chance = self._options.verify, random.Random()
        verdict = verify(job.journal, job.plan, job.reader, share, job.threads, chance)
        checking = usage_json(job.reader.usage - before)
        self._figures["verify"] = {**verdict.to_json(), **checking}
        self._is_checked = True

    def _resume_hint(self) -> str:
        if self._is_finished:
            return "" if self._is_checked else "All keys were found, but they are not checked."
        if self._options.output:
            return f"Continue with --output {self._options.output} --resume."
        return "Without --output a run cannot be continued."
