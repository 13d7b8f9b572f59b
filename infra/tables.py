"""Tables of a user's stack: `dynamodb.ITable` in place of the names in keyhop.json."""

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
    """A table that is a construct. Only the deployment knows `given`, its name or ARN."""

    construct: dynamodb.ITable = field(compare=False)
    called: str
    """The table's name if synth knows it, otherwise the construct's id."""

    @property
    def label(self) -> str:
        return self.called

    @property
    def name(self) -> str:
        return self.construct.table_name

    @property
    def arn(self) -> str:
        return self.construct.table_arn


def keyhop_table(table: dynamodb.ITable, **options: Any) -> OwnTable:
    """Return a table with options of keyhop.json: key_index=True, key_attributes=["customer"],
    sentinel_sort_key="!", sharding={"partition_key": "path"}.

    Its encryption key is taken from the construct. Raises ConfigError for an option that is wrong.
    """
    named = table.table_name
    label = named if not Token.is_unresolved(named) else _label(table.node.id)
    sharding = options.pop("sharding", None)
    if isinstance(sharding, Mapping):
        sharding = {camel(name): value for name, value in sharding.items()}
    entry = {camel(name): value for name, value in options.items()}
    (read,) = tables_of([{**entry, "table": label, "sharding": sharding}])
    home, place = _place(Stack.of(table)), _place_of(table)
    is_elsewhere = home != place and not Token.is_unresolved("".join((*home, *place)))
    if is_elsewhere and (read.key_index or read.sharding):
        what = "keyIndex" if read.key_index else "sharding"
        at_home = "left out for a table of another account or region than the stack's"
        raise wrong_in(label, what, True, at_home)
    key = table.encryption_key.key_arn if table.encryption_key else None
    reference = named if home == place else table.table_arn
    return OwnTable(
        **{**vars(read), "given": reference, "kms_key": key}, construct=table, called=label
    )


def keyhop_pair(
    source: dynamodb.ITable | str, destination: dynamodb.ITable | str, transform: str | None = None
) -> Rekeyed:
    """Return a pair for the setting rekey: `rekey=[keyhop_pair(orders, "OrdersByTenant")]`.

    Args:
        source: The construct or the name of a table.
        destination: The same; a table that `keyhop rekey create` creates has no construct.
        transform: The file with a template's functions, if it has any, relative to the folder in
            which the app runs.
    """
    entry = {"source": _named(source), "destination": _named(destination), "transform": transform}
    (pair,) = rekeyed_of([entry])
    return replace(
        pair,
        source=pair.source if isinstance(source, str) else keyhop_table(source),
        destination=pair.destination if isinstance(destination, str) else keyhop_table(destination),
    )


def _named(table: dynamodb.ITable | str) -> str:
    return table if isinstance(table, str) else keyhop_table(table).called


def own_tables(tables: Iterable[dynamodb.ITable | Table]) -> list[Table]:
    """Return the tables for Keyhop, also those that are constructs without options."""
    return [table if isinstance(table, Table) else keyhop_table(table) for table in tables]


def made_in(stack: Stack, tables: Iterable[Table]) -> list[Construct]:
    """Return the constructs of tables that the stack creates or imports."""
    constructs = [table.construct for table in tables if isinstance(table, OwnTable)]
    return [
        construct
        for construct in constructs
        if isinstance(construct, Construct) and Stack.of(construct) is stack
    ]


def _place(resource: Any) -> tuple[str, str]:
    return str(resource.account), str(resource.region)


def _place_of(table: dynamodb.ITable) -> tuple[str, str]:
    """Return the account and the region in the ARN of a table, if synth knows it. The CDK treats
    imported tables as being in the account and region of the stack.
    """
    if Token.is_unresolved(table.table_arn):
        return _place(table.env)
    _, _, _, region, account, _ = table.table_arn.split(":")
    return account, region


def _label(construct_id: str) -> str:
    """Return a construct id as a valid name of a table."""
    return re.sub(r"[^a-zA-Z0-9_.-]", "-", construct_id).ljust(3, "-")
