"""Tables of somebody's own stack: `dynamodb.ITable` in the place of names in keyhop.json."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aws_cdk import Stack, Token
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct
from keyhop.checks import camel

from .config import Rekeyed, Table, rekeyed_of, tables_of
from .config_values import wrong_in


@dataclass(frozen=True, kw_only=True)
class OwnTable(Table):
    """A table that is a construct. `given`, its name or its ARN, is known at deploy only."""

    construct: dynamodb.ITable = field(compare=False)
    called: str
    """By its name if that is known, else by its construct's id."""

    @property
    def label(self) -> str:
        """For the ids of constructs, and for messages."""
        return self.called

    @property
    def name(self) -> str:
        """Without account and region."""
        return self.construct.table_name

    @property
    def arn(self) -> str:
        """The construct's."""
        return self.construct.table_arn


def keyhop_table(table: dynamodb.ITable, **options: Any) -> OwnTable:
    """A table with what keyhop.json can say of one: key_index=True, key_attributes=["customer"],
    sentinel_sort_key="!", sharding={"partition_key": "path"}.

    Its encryption key is taken from the construct. Raises ConfigError for an option that is wrong.
    """
    named = table.table_name
    known = named if not Token.is_unresolved(named) else _label(table.node.id)
    sharding = options.pop("sharding", None)
    if isinstance(sharding, Mapping):
        sharding = {camel(name): value for name, value in sharding.items()}
    told = {camel(name): value for name, value in options.items()}
    (read,) = tables_of([{**told, "table": known, "sharding": sharding}])
    here, there = _place(Stack.of(table)), _place_of(table)
    is_elsewhere = here != there and not Token.is_unresolved("".join((*here, *there)))
    if is_elsewhere and (read.key_index or read.sharding):
        what = "keyIndex" if read.key_index else "sharding"
        at_home = "left out for a table of another account or region than the stack's"
        raise wrong_in(known, what, True, at_home)
    key = table.encryption_key.key_arn if table.encryption_key else None
    given = named if here == there else table.table_arn
    return OwnTable(**{**vars(read), "given": given, "kms_key": key}, construct=table, called=known)


def keyhop_pair(
    source: dynamodb.ITable | str,
    destination: dynamodb.ITable | str,
    transform: str | None = None,
) -> Rekeyed:
    """A pair of tables for the setting rekey: `rekey=[keyhop_pair(orders, "OrdersByTenant")]`.

    Each table by its construct or by its name, as one that `keyhop rekey create` makes has no
    construct. transform: the file with a template's functions, if it has any, from the folder on in
    which the app runs. Raises ConfigError.
    """
    given = {"source": _named(source), "destination": _named(destination), "transform": transform}
    (pair,) = rekeyed_of([given])
    return replace(
        pair,
        source=pair.source if isinstance(source, str) else keyhop_table(source),
        destination=pair.destination if isinstance(destination, str) else keyhop_table(destination),
    )


def _named(table: dynamodb.ITable | str) -> str:
    return table if isinstance(table, str) else keyhop_table(table).called


def own_tables(tables: Iterable[dynamodb.ITable | Table]) -> list[Table]:
    """Each as Keyhop needs it; one without options can be given as it is."""
    return [one if isinstance(one, Table) else keyhop_table(one) for one in tables]


def made_in(stack: Stack, tables: Iterable[Table]) -> list[Construct]:
    """The tables that are themselves made, or imported, in the stack."""
    constructs = [one.construct for one in tables if isinstance(one, OwnTable)]
    return [one for one in constructs if isinstance(one, Construct) and Stack.of(one) is stack]


def _place(resource: Any) -> tuple[str, str]:
    return str(resource.account), str(resource.region)


def _place_of(table: dynamodb.ITable) -> tuple[str, str]:
    """Return the account and the region of the ARN of a table, if they are known. The CDK treats
    imported tables as being in the account and region of the stack.
    """
    if Token.is_unresolved(table.table_arn):
        return _place(table.env)
    _, _, _, region, account, _ = table.table_arn.split(":")
    return account, region


def _label(construct_id: str) -> str:
    """An id as the name of a table might be."""
    return re.sub(r"[^a-zA-Z0-9_.-]", "-", construct_id).ljust(3, "-")
