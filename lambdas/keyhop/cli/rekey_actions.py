"""What `keyhop rekey` does: ask, call keyhop.Rekey, and print the result."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from keyhop import RekeyStatus
from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED, INTERRUPTED
from keyhop.cli.options import Options, how_to_go_on, with_flags
from keyhop.cli.output import is_text, printable, put_out
from keyhop.cli.progress import JobProgress, StatusLine
from keyhop.cli.runs_actions import Beside, exit_status_of, follow, put_out_start
from keyhop.cli.session import ASK_ABOVE, Facts, Session, Stop, is_terminal, stop_on_signals
from keyhop.jobs.formats import json_text
from keyhop.public.deployment import Run
from keyhop.public.limits import DEFAULT_PATIENCE_SECONDS, DEFAULT_STACK, NO_LIMIT
from keyhop.public.rekey import Rekey, RekeyResult
from keyhop.public.rekey_text import (
    Stages,
    change_lines,
    compared_lines,
    copied_lines,
    cost_line,
    difference_count,
    end_lines,
    execution_cost_lines,
    likeness_lines,
    pace_texts,
    redriven_lines,
    serves_line,
    status_lines,
)
from keyhop.public.runs import Progress
from keyhop.wording import aligned, counted, duration

FULL = "full"

ACTS = {
    "plan": "read all items of {table}",
    "create": "create {to} and {to}.rekey, for a copy of {table}",
    "start": "copy {table} into {to}",
    "verify": "compare {table} and {to}",
    "shadow": "send {share:g} % of the reads to both tables",
    "cutover": "let {to} serve instead of {table}",
    "rollback": "let {table} serve again",
    "redrive": "retry the failed records of {table} and {to}",
    "complete": "end the re-key of {table} to {to}",
    "cancel": "cancel the re-key of {table}",
}
ACCEPT = "accept the loss, and {}"
SETTLE = "settle the writes that bypassed the routers; then the tables must be compared again"

Status = int | Callable[[], int]
"""The exit status, or what follows a run of a deployment: then Ctrl-C ends the showing only."""

Lines = Callable[[Mapping[str, Any]], Iterable[str]]


def run(options: Options) -> int:
    """Run one action on a pair of tables, and return its exit status."""
    status: Status | None = None
    advice = how_to_go_on(options, "Start the same command again: it goes on.")
    with stop_on_signals(advice) as stop:
        status = getattr(RekeyCommand(options, stop), options.action)()
    if status is None:
        return stop.status
    return status() if callable(status) else status


class RekeyCommand(Session):
    """A re-key of a table; its actions are the methods of keyhop.Rekey."""

    def __init__(self, options: Options, stop: Stop) -> None:
        super().__init__(options, stop)
        self._status = StatusLine(options.quiet)
        self.say = self._status.say
        self._shown: JobProgress | None = None
        self._accepts_loss = False
        default = DEFAULT_STACK if getattr(options, "remote", False) else None
        self.rekey = Rekey(
            self.opened,
            options.to,
            stack=options.stack or default,
            patience=getattr(options, "give_up_after", DEFAULT_PATIENCE_SECONDS),
            progress=self._show,
            approve=self._ask,
            say=self.say,
            stop=stop.event,
        )

    def _show(self, progress: Progress) -> None:
        self._shown = self._shown or JobProgress(self._status, progress.activity, "item")
        self._shown.update(progress)
        if progress.is_over:
            self._shown = None

    # --- the question ---

    def _ask(self, action: str, look: Callable[[], RekeyResult | None]) -> None:
        """Ask before something is changed, or costs more than a little."""
        if self._accepts_loss:
            return  # because that was the question
        only_reads = action == "plan" or (action == "verify" and self.options.no_repair)
        plan = look() if only_reads or action in ("cutover", "rollback") else None
        if only_reads and plan is not None and 0 < plan.dollars <= ASK_ABOVE:
            return
        act = self._act(action)
        if plan is not None and plan.obstacles and plan.to_json()["control"]["stage"] == "open":
            act = ACCEPT.format(SETTLE)  # no other change begins at a shut gate
        self.confirm(act, lambda: self._facts(action, plan or look()))

    def _act(self, action: str) -> str:
        options = self.options
        act = ACTS[action].format(**{"share": 0, **vars(options), "table": self.table.name})
        if action == "verify" and not options.no_repair:
            act += f", and repair {options.to}"
        if getattr(options, "delete_source", None):
            act += f", and delete {self.table.bare_name} with all its items"
        return act

    def _facts(self, action: str, plan: RekeyResult | None) -> Facts:
        yield "to", self.options.to
        report = {} if plan is None else plan.to_json()
        if plan is None:
            return
        if action in ("plan", "start", "verify"):
            yield from self._cost_facts(plan)
        elif action == "create":
            yield from ((row["what"], f"{row['fate']}: {row['says']}") for row in report["rows"])
            if self.table.stream is None:
                yield "stream", "is turned on; cancel turns it off again"
        elif action in ("cutover", "rollback"):
            yield from self._gate_facts(report["gates"])
        else:
            yield from report.items()

    def _cost_facts(self, plan: RekeyResult) -> Facts:
        report = plan.to_json()
        items = f"about {report['items']:,}, by DynamoDB's count (up to six hours old)"
        yield "items", items if report["items"] else "not known yet"
        yield "reads", f"about {plan.read_units:,.0f} RRU"
        if plan.action == "start":
            yield "writes", f"about {plan.write_units:,.0f} WRU, with the indexes"
        if plan.action == "verify":
            differing = "about 2.5 WRU for each item up to 1 KB that differs; not in the cost"
            yield "writes", "none" if self.options.no_repair else differing
        yield "cost", f"about ${plan.dollars:,.4f} ({self.connection.prices.on_demand})"
        if "seconds_of_writing" in report:
            yield "time", f"at least {duration(report['seconds_of_writing'])} of writing"
        if "seconds_of_reading" in report:
            seconds = duration(report["seconds_of_reading"])
            yield "time", f"at least {seconds} by one process; it can be resumed"

    def _gate_facts(self, gates: Iterable[Mapping[str, Any]]) -> Facts:
        for gate in gates:
            yield gate["name"], with_flags(gate["says"])
            if "remedy" in gate:
                yield "", with_flags(gate["remedy"])
            if gate["name"] == "stragglers":
                for straggler in self.rekey.status().examples()["bypassed"]:
                    yield "", f"{json_text(straggler['key'])} in the {straggler['side']}"
        yield "writes", "wait for a few seconds; reads never do"

    # --- the actions ---

    def plan(self) -> int:
        options = self.options
        with self._status:
            self._status.now("sample", f"reading a sample of {self.table.name} ...")
            plan = self.rekey.plan(
                **self._given("template", "partition_key", "sort_key", "accept", "full"),
                **self._given("max_read_units", "max_read_rate"),
            )
        shows_keys = (options.show_keys or (FULL if sys.stdout.isatty() else "")) == FULL
        self.put_out(plan.to_json(shows_keys), lambda: plan.to_text(shows_keys))
        return DRIFT_FOUND if plan.blocks else DONE

    def create(self) -> int:
        names = ("template", "partition_key", "sort_key", "accept", "adopt", "lease", "dry_run")
        result = self.rekey.create(**self._given(*names))
        if not result.dry_run:
            return self.status()
        self._print(result.to_json(), lambda report: map(with_flags, likeness_lines(report)))
        return FAILED if result.obstacles else DONE

    def start(self) -> Status:
        names = ("remote", "accept", "max_write_rate", "max_read_rate", "max_cost", "functions")
        given = self._given(*names, "output", "resume", "dry_run")
        if isinstance(given["resume"], str):  # with --remote, the name of a run
            given |= {"output": given["resume"], "resume": True}
        result = self.rekey.start(**given)
        if result.run is not None:
            return self._follow(result.run, self._copied_there, self._beside_copy)
        return self._tell_of_run(
            result,
            lambda report: copied_lines(
                self.rekey.pair, report.get("counts", {}), report.get("unmappable", ())
            ),
        )

    def verify(self) -> Status:
        result = self.rekey.verify(
            repair=not self.options.no_repair,
            **self._given("share", "max_read_rate", "max_cost", "functions"),
            **self._given("output", "resume", "dry_run"),
        )
        if result.run is not None:
            return self._follow(result.run, self._compared_there)
        return self._tell_of_run(
            result, lambda report: compared_lines(self.rekey.pair, report.get("counts", {}))
        )

    def _tell_of_run(self, result: RekeyResult, lines: Lines) -> int:
        """Print the result of a run of this process, or its estimate."""
        if result.dry_run:
            self._print(result.to_json(), lambda report: aligned(self._cost_facts(result)))
            return DONE
        self._print(result.to_json(), lambda report: [*lines(report), cost_line(result)])
        for note in result.notes:
            self.say(with_flags(note))
        return DRIFT_FOUND if result.obstacles else DONE

    def throttle(self) -> int:
        rate = self.options.rate
        return self._tell(self.rekey.throttle(None if rate == NO_LIMIT else rate))

    def pause(self) -> int:
        return self._tell(self.rekey.pause())

    def resume(self) -> int:
        return self._tell(self.rekey.resume())

    def shadow(self) -> int:
        share, dry_run = self.options.share, self.options.dry_run
        status = self.rekey.shadow(share, dry_run=dry_run)
        if not dry_run:
            return self._tell(status)
        current = status.control.shadow * 100
        facts = (
            ("reads", f"{share:g} % of the routers' reads, on both tables; now {current:g} %"),
            ("writes", "1 WRU, of the control item"),
            ("cost", "that of these reads once more, which the routers pay"),
        )
        self._print({"share": share, "current_share": current}, lambda report: aligned(facts))
        return DONE

    def status(self) -> int:
        return self._tell(self.rekey.status())

    def _tell(self, status: RekeyStatus) -> int:
        shows_keys = getattr(self.options, "show_keys", None) == FULL
        self._print(
            status.to_json(shows_keys), lambda report: status_lines(status, shows_keys, with_flags)
        )
        return DONE

    def cutover(self) -> Status:
        return self._change(self.rekey.cutover, **self._given("expect"))

    def rollback(self) -> Status:
        return self._change(self.rekey.rollback)

    def _change(self, change: Callable[..., RekeyResult], **more: Any) -> Status:
        options, accept = self.options, set(self.options.accept)
        more |= self._given("freeze_limit", "dry_run")
        result = change(accept=accept, **more)
        can_ask = not options.dry_run and not options.yes and is_terminal()
        if can_ask and result.acceptable:
            act = ACCEPT.format(self._act(result.action))
            self.confirm(act, lambda: self._facts(result.action, result))
            self._accepts_loss = True
            accept |= result.acceptable
            result = change(accept=accept, **more)
        if result.run is not None:
            stages = Stages(self.rekey.pair, lambda: self._progress().control, time.monotonic)
            return self._follow(result.run, self._served_there, stages)
        self._print(
            result.to_json(), lambda report: map(with_flags, change_lines(self.rekey.pair, report))
        )
        if result.obstacles:
            return DRIFT_FOUND
        return DONE if result.is_done or result.dry_run else FAILED

    def redrive(self) -> int:
        outcome = self.rekey.redrive(**self._given("dry_run"))
        if self.options.dry_run:
            text = (
                f"About {counted(outcome.left, 'message')} in the failure queue. Each of this "
                "re-key would be sent to the function once, and deleted if its item is settled; "
                "nothing was done."
            )
            self.put_out({"waiting": outcome.left}, lambda: text)
            return DONE
        self._print(asdict(outcome), redriven_lines)
        return FAILED if outcome.left else DONE

    def complete(self) -> int:
        flags = self._given("export", "delete_source", "dry_run")
        return self._tell_end(self.rekey.complete(window_days=self.options.window, **flags))

    def cancel(self) -> int:
        return self._tell_end(self.rekey.cancel(**self._given("keep_new", "dry_run")))

    def _tell_end(self, result: RekeyResult) -> int:
        self._print(result.to_json(), end_lines)
        return DONE

    # --- a run of the deployment ---

    def _follow(
        self,
        run: Run,
        lines: Callable[[Any], tuple[int, list[str]]],
        beside: Beside = lambda: ("", ()),
    ) -> Status:
        """Print the name of a run, or show it with --follow, and print its result."""
        options, deployment = self.options, self.rekey.deployment()
        assert deployment is not None
        stack = deployment.stack
        if not options.follow:
            put_out_start(options, stack, run)
            return DONE

        def end() -> int:
            ended = follow(stack, run, options.quiet, beside)
            if ended is None:
                return INTERRUPTED
            status, texts = exit_status_of(ended), list[str]()
            if ended.has_succeeded:
                status, texts = lines(ended.output)
            report = {"run": ended.name, "status": ended.status}
            if ended.output is not None:
                report["result"] = ended.output
            if not is_text(options.format) or (texts and not options.quiet):
                put_out(options.format, report, lambda: "\n".join(texts))
            if not ended.has_succeeded:
                why = f"{printable(ended.error or 'error')}: {printable(ended.cause or '')}"
                print(f"keyhop: {why}", file=sys.stderr)
            return status

        return end

    def _copied_there(self, output: Mapping[str, Any]) -> tuple[int, list[str]]:
        lines = copied_lines(self.rekey.pair, output["outcomes"])
        return DONE, [*lines, *execution_cost_lines(output["cost"])]

    def _compared_there(self, output: Mapping[str, Any]) -> tuple[int, list[str]]:
        counts = output["compared"]
        status = DRIFT_FOUND if difference_count(counts) else DONE
        lines = compared_lines(self.rekey.pair, counts)
        return status, [*lines, *execution_cost_lines(output["cost"])]

    def _served_there(self, output: Mapping[str, Any]) -> tuple[int, list[str]]:
        self.rekey.move_expiry()
        return DONE, [serves_line(self.rekey.pair, output["control"], output.get("pause"))]

    def _progress(self) -> RekeyStatus:
        return self.rekey.status(counts=False)

    def _beside_copy(self) -> tuple[str, list[str]]:
        return "", pace_texts(self._progress())

    def _print(self, report: Mapping[str, Any], lines: Lines) -> None:
        self.put_out(report, lambda: "\n".join(lines(report)))

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self.options, name) for name in names}
