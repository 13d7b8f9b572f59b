"""What `keyhop index` does: ask, call keyhop.KeyIndex, and print the result."""

from collections.abc import Callable
from typing import Any

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.options import Options, how_to_go_on, with_flags
from keyhop.cli.output import is_text, put_out
from keyhop.cli.progress import JobProgress, StatusLine
from keyhop.cli.session import Session, Stop, stop_on_signals
from keyhop.errors import CannotStart
from keyhop.key_index.request import ORDERS
from keyhop.public.key_index import IndexResult, IndexStatus, KeyIndex
from keyhop.public.limits import GRACE_SECONDS
from keyhop.public.runs import Progress
from keyhop.wording import counted

MOST_SHOWN = 10
"""Collections of each kind that are named, if they prevent a build."""

WRITES = {
    "build": "build the key index of {}",
    "verify": "verify, and repair, the key index of {}",
    "remove": "remove the key index of {}",
    "redrive": "put and delete sentinels of {} as the queue's records call for",
}


def run(options: Options) -> int:
    """Run one action on the key index of a table, and return its exit status."""
    if getattr(options, "remote", False):
        return _start(options)
    with stop_on_signals(how_to_go_on(options, "Start the same command again.")) as stop:
        return int(getattr(IndexCommand(options, stop), options.action)())
    return stop.status


def _start(options: Options) -> int:
    """Let a deployment build, verify or remove the key index; ask before it writes."""
    from keyhop.cli.runs_actions import input_of, start  # They load boto3's transfers.

    repair = not getattr(options, "no_repair", False)
    grace = getattr(options, "grace", GRACE_SECONDS)
    order = ORDERS[options.action]
    # The flag --region names the region of the deployment, not that of the keeper.
    values = input_of(order, options, repair=repair, grace_seconds=grace, region=None)
    act = WRITES[options.action].format(options.table)
    machine = f"{options.action.capitalize()}KeyIndex"
    return start(options, machine, values, act if repair else "")


class IndexCommand(Session):
    """The key index of a table; build, verify, remove, redrive and status are the actions."""

    def __init__(self, options: Options, stop: Stop) -> None:
        super().__init__(options, stop)
        self._status = StatusLine(options.quiet)
        self._shown: JobProgress | None = None
        self.index = KeyIndex(
            self.opened,
            stack=options.stack,
            sentinel=getattr(options, "sentinel", None),
            patience=getattr(options, "give_up_after", 0),
            progress=self._show,
            approve=self._ask,
            say=self._status.say,
            stop=stop.event,
        )

    def _show(self, progress: Progress) -> None:
        if self._shown is None:
            self._shown = JobProgress(self._status, progress.activity)
        self._shown.update(progress)
        if progress.is_over:
            self._shown = None

    def _ask(self, action: str, estimate: Callable[[], IndexResult | None]) -> None:
        def facts() -> Any:
            expected = estimate()
            return () if expected is None else expected.facts

        self.confirm(WRITES[action].format(self.table.name), facts)

    def _arguments(self) -> dict[str, Any]:
        names = ("dry_run", "max_write_rate", "max_read_rate", "output", "resume")
        arguments = {name: getattr(self.options, name) for name in names}
        return arguments | {k: v for k, v in vars(self.options).items() if k == "max_cost"}

    def build(self) -> int:
        try:
            return self._tell(self.index.build(**self._arguments()))
        except CannotStart:
            self._tell_what_stands_in_its_way()
            raise

    def _tell_what_stands_in_its_way(self) -> None:
        """Name the collections that prevent a build, because somebody must correct them."""
        for kind, keys in self.index.blocking.get("examples", {}).items():
            self.say(f"  {kind:9} {'; '.join(map(str, keys[:MOST_SHOWN]))}")
            if len(keys) > MOST_SHOWN and is_text(self.options.format):
                self.say(
                    f"            and {len(keys) - MOST_SHOWN:,} more; --format json names all"
                )
        if self.index.blocking and not is_text(self.options.format):
            put_out(self.options.format, self.index.blocking, str)

    def verify(self) -> int:
        repair, grace = not self.options.no_repair, self.options.grace
        return self._tell(
            self.index.verify(repair=repair, grace_seconds=grace, **self._arguments())
        )

    def remove(self) -> int:
        options = self.options
        return self._tell(
            self.index.remove(sweep=options.sweep, accept=options.accept, **self._arguments())
        )

    def _tell(self, result: IndexResult) -> int:
        """Print a result, and return the exit status."""
        if result.dry_run:
            self._print(result)
            return DONE
        self.put_out(result.to_json(), result.to_text, result.reports)
        for note in result.notes:
            self.say(note)
        return DRIFT_FOUND if result.drift else DONE

    def redrive(self) -> int:
        options = self.options
        result = self.index.redrive(
            queue=options.queue, discard_old=options.discard_old, dry_run=options.dry_run
        )
        if options.dry_run:
            report = {"waiting": result.messages}
            text = f"About {counted(result.messages, 'message')} in the queue; nothing was done."
            self.put_out(report, lambda: text)
            return DONE
        verify = f"keyhop index verify {self.table.name}"
        self.put_out(result.to_json(), lambda: with_flags(result.text(self.table.name, verify)))
        return DONE if result.is_clear else FAILED

    def status(self) -> int:
        self._print(self.index.status())
        return DONE

    def _print(self, result: IndexResult | IndexStatus) -> None:
        """Print what somebody asks for, also with --quiet."""
        put_out(self.options.format, result.to_json(), result.to_text)
