"""The stack for keyhop.json, composed of the constructs of the other modules."""

from typing import Any

from aws_cdk import Stack
from constructs import Construct

from .config import Config
from .deployment import KeyEnumeration
from .each import ForEachKey
from .key_index import KeyIndex
from .rekey import Rekey
from .report import KeyReports
from .sharding import ShardedTables


class KeyhopStack(Stack):
    """The stack of one deployment."""

    def __init__(self, scope: Construct, config: Config, **options: Any) -> None:
        super().__init__(
            scope,
            config.stack_name,
            description="Keyhop: the partition keys of DynamoDB tables",
            **options,
        )
        # The CDK leaves "Default" out of logical ids, so those of older deployments stay.
        keys = KeyEnumeration(self, "Default", config=config)
        if config.key_index_tables:
            KeyIndex(self, "KeyIndex", keys)
        if config.sharded_tables:
            ShardedTables(self, "Sharding", keys)
        if config.each_tables:
            ForEachKey(self, "Each", keys)
        if config.report_tables:
            KeyReports(self, "Reports", keys)
        if config.rekey:
            Rekey(self, "Rekey", keys)
