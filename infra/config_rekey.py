"""The context's pairs of tables that may be re-keyed, and the functions that may run for them."""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from keyhop.checks import Must, names_of, text
from keyhop.jobs.request import TABLE_NAME
from keyhop.rekey.allowed import Allowed, code_digest
from keyhop.rekey.pair import SIDE_SUFFIX
from keyhop.wording import counted

from .config_sharding import MOST_NAME
from .config_tables import MOST_TOLD, KmsKey, Table, listed, told_bytes
from .config_values import ConfigError, shape_of, wrong
from .paths import IS_INSTALLED, ROOT

PAIRS = (
    'a list of pairs of tables, as [{"source": "Orders", "destination": "OrdersByTenant"}], each '
    "table in one of them"
)
MOST_CODE = 100_000
"""Characters: the plan, with the text of the functions, is one item of at most 400 KB."""

_IS_NAME = text(TABLE_NAME)
_A_NAME = "the name of a table (3 to 255 of a-z A-Z 0-9 _ . -) in the stack's account and region"


def _has_room(value: Any) -> bool:
    return _IS_NAME(value) and len(value + SIDE_SUFFIX) <= MOST_NAME


@dataclass(frozen=True)
class Given:
    """A pair as the context has it. transform: a file of Python functions, beside keyhop.json; its
    text as it is at synth is the only one that runs in the deployment.

    source_kms_key, destination_kms_key: as kmsKey of the field tables, whose entries count as well.
    """

    source: Annotated[str, Must(_IS_NAME, _A_NAME)]
    destination: Annotated[
        str, Must(_has_room, f"{_A_NAME}, with room for {SIDE_SUFFIX} at its end")
    ]
    transform: Annotated[str | None, Must(text(), "the name of a Python file")] = None
    source_kms_key: KmsKey = None
    destination_kms_key: KmsKey = None


@dataclass(frozen=True)
class Rekeyed:
    """A pair of tables. code: the digest of the functions that may run for it; empty: none may."""

    source: Table
    destination: Table
    code: str = ""

    @property
    def side(self) -> Table:
        """The side table, which `keyhop rekey create` makes."""
        return Table(self.destination.name + SIDE_SUFFIX)

    @property
    def both(self) -> tuple[Table, Table]:
        return self.source, self.destination

    @property
    def names(self) -> tuple[str, str]:
        return self.source.name, self.destination.name

    @property
    def label(self) -> str:
        """For the ids of constructs."""
        return self.destination.label

    def allowed(self) -> Allowed:
        """What the functions are told."""
        return Allowed(self.source.name, self.destination.name, self.code)


def rekeyed_of(value: Any) -> tuple[Rekeyed, ...]:
    """The field rekey, which may have pairs of constructs; raises ConfigError."""
    given = value if isinstance(value, list | tuple) else listed(value)
    pairs = tuple(one if isinstance(one, Rekeyed) else _pair(one) for one in given)
    names = [table.name for pair in pairs for table in (*pair.both, pair.side)]
    if len(set(names)) < len(names):
        raise wrong("rekey", [list(pair.names) for pair in pairs], PAIRS)
    return pairs


def are_pairs(value: Any) -> bool:
    """Whether they are objects in a list, which may be written as JSON."""
    found = value if isinstance(value, list | tuple) else listed(value)
    return bool(found) and all(isinstance(one, Mapping | Rekeyed) for one in found)


def with_tables(pairs: Sequence[Rekeyed], tables: Sequence[Table]) -> tuple[Rekeyed, ...]:
    """The pairs, with what the field tables says of their tables; raises ConfigError.

    Of pairs that are more than the functions can be told of, as well.
    """
    known = {table.name: table for table in tables}
    complete = tuple(
        replace(
            pair,
            source=_like(pair.source, known.get(pair.source.name)),
            destination=_unsharded(_like(pair.destination, known.get(pair.destination.name))),
        )
        for pair in pairs
    )
    taken = told_bytes(tables)
    fit = sum(taken + _told(complete[: n + 1]) <= MOST_TOLD for n in range(len(complete)))
    if fit < len(complete):
        raise ConfigError(
            f"The context field rekey has {counted(len(complete), 'pair')}, of which {fit} "
            f"fit beside the "
            "tables of this stack, as the functions are told of them in an environment of 4 KB. "
            "Deploy a second stack (stackName) for the others."
        )
    return complete


def which_pairs(pairs: Sequence[Rekeyed]) -> dict[str, str]:
    """The environment's pairs."""
    return {"KEYHOP_REKEY": json.dumps([pair.allowed().to_json() for pair in pairs])}


def _told(pairs: Sequence[Rekeyed]) -> int:
    return len(json.dumps(which_pairs(pairs)).encode())


def _like(table: Table, known: Table | None) -> Table:
    if known is None:
        return table
    return replace(table, kms_key=table.kms_key or known.kms_key, sharding=known.sharding)


def _unsharded(destination: Table) -> Table:
    if destination.sharding:
        raise ConfigError(
            f"The context field rekey has a destination, {destination.name}, that is sharded (its "
            "entry in the field tables): a template gives each item its one place, and would not "
            "follow shards that writers add and drain. Take one of the two away."
        )
    return destination


def _pair(entry: Any) -> Rekeyed:
    def refused(name: str, value: Any, allowed: str) -> ConfigError:
        return wrong(f"rekey, in {json.dumps(entry, default=str)}, its {name}", value, allowed)

    given = {name: value for name, value in entry.items() if value is not None}
    read = shape_of(
        Given,
        {"source": None, "destination": None, **given},
        names_of(Given),
        "The context field rekey has a pair with the field {}, which",
        refused,
    )
    code = "" if read.transform is None else code_digest(_text_of(read.transform))
    return Rekeyed(
        Table(read.source, kms_key=read.source_kms_key),
        Table(read.destination, kms_key=read.destination_kms_key),
        code,
    )


def _text_of(name: str) -> str:
    """The file's text; raises ConfigError for what could not run."""
    folder = Path() if IS_INSTALLED else ROOT
    whose = f"The context field rekey names the transform {name}, which"
    try:
        found = (folder / name).read_text(encoding="utf-8")
        ast.parse(found)
    except FileNotFoundError:
        raise ConfigError(f"{whose} is not there; it is looked for beside keyhop.json.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{whose} cannot be read as a text: {error}.") from None
    except SyntaxError as error:
        raise ConfigError(f"{whose} is no Python: {error.msg} in line {error.lineno}.") from None
    if len(found) > MOST_CODE:
        raise ConfigError(f"{whose} has {len(found):,} characters; at most {MOST_CODE:,} fit.")
    return found
