"""`keyhop rekey create`, `complete`, `cancel`: what makes tables, and what removes them."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from keyhop.cli.exit_status import DONE, FAILED
from keyhop.cli.rekey_pair import PairCommand
from keyhop.cli.rekey_template import Designed, designed
from keyhop.cli.session import Facts
from keyhop.rekey.life_cycle import by_hand
from keyhop.rekey.life_cycle.create import Creation
from keyhop.rekey.life_cycle.end import MOST_NAMED, Ending
from keyhop.rekey.life_cycle.end import Options as Choices
from keyhop.rekey.life_cycle.likeness import Likeness, Row
from keyhop.wording import duration


def create(command: PairCommand) -> int:
    """The new table, the side table, the stream."""
    options = command.options
    design = designed(command)
    creation = Creation(
        command.connection,
        design.pair,
        design.keys,
        client_of=command.client_of,
        accepted=options.accept,
        adopt=options.adopt,
        lease=options.lease,
    )
    if options.dry_run:
        looked = creation.look()
        command.put_out(_looked_json(design, looked), lambda: "\n".join(_lines(design, looked)))
        return FAILED if looked.refused else DONE
    act = f"create {command.to} and {design.pair.side}, to be filled from {command.table.name}"
    command.confirm(act, partial(_facts, command, creation))
    command.all_steps(creation.step)
    return command.put_out_status(command.side())


def _facts(command: PairCommand, creation: Creation) -> Facts:
    for row in creation.look().rows:
        yield row.what, f"{row.fate}: {row.says}"
    if command.table.stream is None:
        yield "stream", "is turned on; cancel turns it off again"


def _looked_json(design: Designed, looked: Likeness) -> Mapping[str, Any]:
    return {
        "source": design.pair.source,
        "destination": design.pair.destination,
        "class": design.transform.kind,
        "rows": [row.to_json() for row in looked.rows],
        "refused": [row.what for row in looked.refused],
        "request": looked.request,
    }


def _lines(design: Designed, looked: Likeness) -> Iterator[str]:
    pair = design.pair
    yield f"{pair.destination} would be made like {pair.source}:"
    width = max((len(row.what) for row in looked.rows), default=0)
    for row in looked.rows:
        yield from _row_lines(row, width)


def _row_lines(row: Row, width: int) -> Iterator[str]:
    yield f"  {row.what.ljust(width)}  {row.fate}: {row.says}"
    if row.accept:
        yield f"  {' ' * width}  to go on all the same: --accept {' or '.join(row.accept)}"
    if row.command:
        yield f"  {' ' * width}  by hand: {row.command}"


def complete(command: PairCommand) -> int:
    """What is Keyhop's goes; the new table stays."""
    options, source = command.options, command.table.bare_name
    ending = Ending(
        command.connection,
        command.to,
        "complete",
        followers=command.followers(),
        client_of=command.client_of,
        options=Choices(
            window_days=options.window,
            delete=options.delete_source or "",
            export=options.export or "",
        ),
    )
    kept = "is deleted" if options.delete_source else "is kept, and no longer kept true"
    told = {
        "serves": command.to,
        source: kept,
        "export": options.export or f"none; by hand: {by_hand.export(command.table.arn)}",
        "way back": "none after this, but another re-key",
    }
    act = f"end the re-key of {command.table.name} to {command.to}"
    act += f", and delete {source} with all its items" if options.delete_source else ""
    return _end(command, ending, act, told)


def cancel(command: PairCommand) -> int:
    """What is Keyhop's goes, and the new table; the old one is as before."""
    delete = "" if command.options.keep_new else command.to
    ending = Ending(
        command.connection,
        command.to,
        "cancel",
        followers=command.followers(),
        client_of=command.client_of,
        options=Choices(delete=delete),
    )
    told = {
        "serves": command.table.bare_name,
        command.to: "is deleted, with all that was copied" if delete else "is kept",
    }
    return _end(command, ending, f"cancel the re-key of {command.table.name}", told)


def _end(command: PairCommand, ending: Ending, act: str, told: Mapping[str, str]) -> int:
    command.side()
    ending.check()
    if routers := ending.routers_of_last_day():
        named = [f"{name} ({duration(age)} ago)" for name, age in routers.items()]
        more = f" and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
        told = {
            **told,
            "routers": f"of the last day, with their last reports: {', '.join(named[:MOST_NAMED])}"
            f"{more}; a router that is used again after this fails: take it out of the "
            "application first",
        }
    if command.options.dry_run:
        width = max(map(len, told))
        command.put_out(told, lambda: "\n".join(f"{n.ljust(width)}  {t}" for n, t in told.items()))
        return DONE
    command.confirm(act, lambda: told.items())
    says = command.all_steps(ending.step).says
    command.put_out({**told, "done": says}, lambda: f"{says[:1].upper()}{says[1:]}.")
    return DONE
