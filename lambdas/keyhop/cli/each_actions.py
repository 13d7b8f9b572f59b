"""What `keyhop each` does: list the keys, then do something for each of them; undo it."""

import json
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from keyhop.checks import camel, check_characters
from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.options import Options, command_line, flag, with_flags
from keyhop.cli.output import put_out
from keyhop.cli.progress import JobProgress, StatusLine
from keyhop.cli.session import Facts, Session, place, stop_on_signals
from keyhop.each.request import KINDS, EachInput
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError
from keyhop.public.each import EachResult, directory_of, for_each_key
from keyhop.public.runs import Progress
from keyhop.wording import aligned, counted, duration

ACTS = {
    "put": "put the item into each collection of {}",
    "update": "update that item of each collection of {}",
    "delete": "delete that item of each collection of {}",
    "undo": "delete what the run has put into {}",
}
MEANS = {
    "put": "the item is there now",
    "there": "another item was there already",
    "gone": "the collection, or the item, is no longer there",
    "guarded": "the item was alone, and was deleted again",
    "failed": "see the errors in the run's parts",
    "changed": "the item was changed since, and was kept",
}
_ARGUMENTS = (
    *("put", "update", "delete", "invoke", "queue", "start_machine", "undo", "item", "values"),
    *("names", "guard", "overwrite", "batch", "where", "keys", "method", "max_write_rate"),
    *(
        "max_write_units",
        "max_read_rate",
        "max_read_units",
        "max_cost",
        "stack",
        "resume",
        "dry_run",
    ),
)
"""The flags that are arguments of keyhop.for_each_key."""

_FIELDS = {field.name for field in fields(EachInput)}


def run(options: Options) -> int:
    """Run the command; return its exit status, or raise a KeyhopError."""
    if options.remote:
        return _start(options)
    arguments = _checked_arguments(options)
    command = EachCommand(options, arguments)
    with stop_on_signals("Nothing was done.", stop=command.stop):
        return command.run()
    return command.stop.status


def _start(options: Options) -> int:
    """`keyhop each --remote`: start an execution of ForEachKey; ask before it begins a new run."""
    from keyhop.cli.runs_actions import input_of, start  # They load boto3's transfers.

    delete = options.delete or None
    values = input_of(EachInput, options, **_objects(options), delete=delete)
    kind = next((kind for kind in KINDS if camel(kind) in values), "")
    act = ACTS.get(kind, "pass on each key of {}").format(options.table)
    return start(options, "ForEachKey", values, "" if options.resume else act)


def _objects(options: Options) -> dict[str, Any]:
    """Return the values of the flags that are JSON. Raise CannotStart if one cannot be read."""
    return {
        "put": options.put and _json(options.put, "--put", file=True),
        "item": options.item and _item(options.item),
        "values": options.values and _json(options.values, "--values"),
        "names": options.names and _json(options.names, "--names"),
    }


def _checked_arguments(options: Options) -> dict[str, Any]:
    """Return the arguments of keyhop.for_each_key.

    Raises:
        CannotStart: A file or JSON cannot be read, or flags contradict each other.
    """
    if options.resume and options.dry_run:
        raise CannotStart("--resume and --dry-run exclude each other: leave one of them out.")
    values = {name: getattr(options, name) for name in _ARGUMENTS} | _objects(options)
    settings = {name: value for name, value in values.items() if name in _FIELDS}
    settings["delete"] = options.delete or None
    settings["resume"] = options.output if options.resume else None
    EachInput(table=options.table, **settings).request(flag, {})
    return values


def _json(source: str, flag: str, file: bool = False) -> dict[str, Any]:
    """Return an object from JSON or from a file that contains it."""
    text = source
    if file or not source.lstrip().startswith("{"):
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CannotStart(f"{flag}: {source} cannot be read: {error}.") from error
    try:
        value = json.loads(text, parse_float=Decimal)  # a float would not keep 38 digits
        check_characters(value)
    except (ValueError, RecursionError) as error:
        raise CannotStart(f"{flag} cannot be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise CannotStart(f'{flag} must be a JSON object, such as {{"sk": "#feature"}}.')
    return value


def _item(source: str) -> dict[str, Any]:
    """Return an item's sort key from NAME=VALUE or JSON."""
    if source.lstrip().startswith("{"):
        return _json(source, "--item")
    name, equals, value = source.partition("=")
    if not (name and equals):
        raise CannotStart("--item must be NAME=VALUE, such as sk=PROFILE, or a JSON object.")
    return {name: value}


class EachCommand(Session):
    """The action for each key of a table."""

    def __init__(self, options: Options, arguments: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._arguments = arguments
        self._status = StatusLine(options.quiet)
        self._shown: JobProgress | None = None
        self._path = options.output or str(directory_of(self.table.bare_name, options.undo))

    def run(self) -> int:
        """Do it, and return the exit status."""
        try:
            result = for_each_key(
                self.opened,
                **self._arguments,
                output=self._path,
                patience=self.options.give_up_after,
                processes=None,
                progress=self._show,
                approve=self._ask,
                say=self.say,
                stop=self.stop.event,
            )
        except KeyhopError as error:
            if error.result is None:
                raise
            self._print(error.result)
            hint = "" if isinstance(error, BrokenPromise) else self._hint
            print(f"keyhop: {with_flags(str(error))} {hint}".rstrip(), file=sys.stderr)
            return BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
        if result.dry_run:
            facts = [*place(self.table.arn, self.connection.endpoint), *estimate_facts(result)]
            put_out(self.options.format, dict(facts), lambda: "\n".join(aligned(facts, width=10)))
            return DONE
        self._print(result)
        if not result.finished:
            print(f"keyhop: Interrupted. {self._hint}", file=sys.stderr)
            return self.stop.status
        bad = result.outcomes.get("failed") or result.outcomes.get("changed")
        return KEYS_MISSING if bad else DONE

    @property
    def _hint(self) -> str:
        return f"Continue with --resume {shlex.quote(str(self._path))}."

    def _show(self, progress: Progress) -> None:
        if self._shown is None:
            self._shown = JobProgress(self._status, progress.activity)
        self._shown.update(progress)
        if progress.is_over:
            self._shown = None

    def _ask(self, action: str, estimate: Callable[[], EachResult]) -> None:
        """Ask before the run is begun; then say how to continue it, if nobody chose its place."""
        act = ACTS.get(action, "pass on each key of {}").format(self.table.name)
        self.confirm(act, lambda: estimate_facts(estimate()))
        if not self.options.output:
            command = command_line(output=None, resume=self._path)
            self.say(f"After an interruption this continues the run: {command}")

    def _print(self, result: EachResult) -> None:
        report = result.to_json()
        self.put_out(report, lambda: "\n".join(lines_of(report)))


def estimate_facts(result: EachResult) -> Facts:
    """Return an estimate for a person."""
    estimate = result.to_json()
    keys, per_key = estimate["keys"], estimate["write_units_per_key"]
    high = math.inf if keys["high"] is None else keys["high"]
    between = f" (95% interval {keys['low']:,.0f} to {high:,.0f})"
    yield "keys", f"{keys['estimate']:,.0f}{'' if keys['low'] == high else between}"
    yield "reads", f"about {result.read_units:,.0f} RRU"
    yield "writes", f"about {result.write_units:,.0f} WRU, {per_key:g} for each key, indexes apart"
    if names := estimate["without_writes_to"]:
        yield "not in it", f"writes to the vector indexes {', '.join(names)}, charged by the byte"
    maximum = estimate["maximum_dollars"]
    at_most = "" if maximum is None else f", at most ${maximum:,.4f}"
    yield "cost", f"about ${result.dollars:,.4f}{at_most}"
    yield "prices", estimate["price"]
    yield "time", f"at least {duration(estimate['seconds_of_writing'])} of writing"
    if sampled := estimate["sampled_read_units"]:
        yield "sample", f"{sampled:,.1f} RRU were read for this"


def lines_of(report: Mapping[str, Any]) -> Iterator[str]:
    """Return the result for a person: what became of the keys, and the cost."""
    so_far = "" if report["finished"] else " so far"
    yield f"{counted(report['keys'], 'key')} of {report['table']}{so_far}"
    for name, count in sorted(report["outcomes"].items(), key=lambda entry: -entry[1]):
        yield f"  {name:9} {count:>9,}  {MEANS.get(name, '')}".rstrip()
    reads, writes = f"{report['read_units']:,.1f} RRU", f"{report['write_units']:,.1f} WRU"
    facts = [("wrote", f"{writes}, read {reads}: ${report['dollars']:,.6f}")]
    if keys := report["list"]:
        facts.append(("list", f"{keys['read_units']:,.1f} RRU, by {keys['method']}"))
    yield from aligned([*facts, ("run", report["run"])], "  ", 9)
