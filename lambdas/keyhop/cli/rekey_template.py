"""A template from a file, and the keys of the new table: what `plan` and `create` begin with."""

from dataclasses import dataclass
from pathlib import Path

from keyhop.cli.rekey_pair import PairCommand
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import KeyType
from keyhop.errors import CannotStart
from keyhop.jobs.request import TABLE_NAME
from keyhop.rekey.life_cycle.create import found
from keyhop.rekey.pair import SIDE_SUFFIX, Pair
from keyhop.rekey.template.files import read
from keyhop.rekey.template.load import load
from keyhop.rekey.transform import Transform

Given = tuple[str, KeyType | None] | None
"""A key attribute of the command line: its name, and its type if that was given."""


@dataclass(frozen=True, slots=True)
class Designed:
    """keys: those of the destination."""

    pair: Pair
    keys: KeySpace
    transform: Transform


def designed(command: PairCommand) -> Designed:
    """Raises CannotStart for what is wrong with the template, in one sentence."""
    options, source = command.options, command.table
    _check_name(source.bare_name, command.to)
    template, code = read(Path(options.template))
    keys = _keys(command)
    pair = Pair(source.bare_name, command.to, template, code)
    return Designed(pair, keys, load(template, source.space, keys, code, trusted=code))


def _check_name(source: str, new: str) -> None:
    if new == source:
        raise CannotStart("--to must name another table than the one that is re-keyed.")
    if not (TABLE_NAME.fullmatch(new) and TABLE_NAME.fullmatch(new + SIDE_SUFFIX)):
        raise CannotStart(
            f"{new!r} is no name for the new table: it has 3 to 249 of a-z A-Z 0-9 _ . -, as the "
            f"side table is called so, with {SIDE_SUFFIX} at its end."
        )


def _keys(command: PairCommand) -> KeySpace:
    """Of the new table: its own if it is there, else as they are given."""
    options = command.options
    there = found(command.connection, command.to)
    given = options.partition_key or options.sort_key
    if there is not None and not given:
        return there.space
    return keys_of(command.table.space, options.partition_key, options.sort_key)


def keys_of(source: KeySpace, partition: Given, sort: Given) -> KeySpace:
    """As given; what is not given is as in the source. A sort key of no name is none."""
    has_sort = sort is None or bool(sort[0])
    its_sort = _attribute(sort, source.sort, source) if has_sort else None
    its_partition = _attribute(partition, source.partition[0], source)
    assert its_partition is not None
    if its_sort is not None and its_sort.name == its_partition.name:
        raise CannotStart(
            f"{its_sort.name!r} cannot be both keys of the new table: give --sort-key another "
            "name, or --sort-key= for none."
        )
    return KeySpace((its_partition,), its_sort)


def _attribute(given: Given, default: KeyAttribute | None, source: KeySpace) -> KeyAttribute | None:
    if given is None:
        return default
    name, type_ = given
    known = {one.name: one.type for one in (*source.partition, source.sort) if one is not None}
    return KeyAttribute(name, type_ or known.get(name, "S"))
