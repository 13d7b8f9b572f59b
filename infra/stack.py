"""Composes the deployment; defines nothing itself."""

from typing import Any

from aws_cdk import Annotations, CfnOutput, Stack
from constructs import Construct

from infra import views
from infra.config import Config
from infra.enumeration import Enumeration
from infra.key_index import KeyIndex
from infra.monitoring import Monitoring
from infra.results import Results
from infra.sharding import ShardedTables


class KeyhopStack(Stack):
    """Everything that one deployment is."""

    def __init__(self, scope: Construct, config: Config, **options: Any) -> None:
        super().__init__(
            scope,
            config.stack_name,
            description="Keyhop: the partition keys of DynamoDB tables",
            **options,
        )
        results = Results(self, "Results", config)
        runs = Enumeration(self, "Enumeration", config, results.bucket)
        key_index = (
            KeyIndex(self, "KeyIndex", config, results.bucket, runs)
            if config.key_index_tables
            else None
        )
        sharded = (
            ShardedTables(self, "Sharding", config, runs.make) if config.sharded_tables else None
        )
        watched = [views.of_runs(config, runs.job)]
        if key_index:
            watched.append(views.of_key_indexes(config, key_index))
        if sharded:
            watched.append(views.of_sharding(config, sharded))
        watch = Monitoring(self, "Monitoring", config, watched)
        _say_what_is_open(self, config)
        for name, value, description in (
            (
                "StateMachineArn",
                runs.job.state_machine_arn,
                'Start an execution of it with {"table": "..."}',
            ),
            ("ResultsBucketName", results.bucket.bucket_name, "Each run lies in runs/<its id>/"),
            ("DashboardUrl", watch.dashboard_url, "Keys found, read rate, throttles, errors, cost"),
            ("GlueDatabase", results.database_name, "The database of Athena's table"),
            ("GlueTable", results.table_name, "Athena's table over the parts of the runs"),
            *(key_index.outputs() if key_index else ()),
            *(sharded.outputs() if sharded else ()),
        ):
            CfnOutput(self, name, value=value, description=description)


def _say_what_is_open(stack: Stack, config: Config) -> None:
    unnamed = [table.given for table in config.tables if not table.key_attributes]
    if unnamed:
        Annotations.of(stack).add_warning_v2(
            "keyhop:keyAttributes",
            "IAM lets the functions Scan for any named attributes of "
            f"{', '.join(unnamed)}; name the key attributes of tables and indexes in the context "
            "field keyAttributes to limit it to them.",
        )
    unlimited = [table.given for table in config.key_index_tables if not table.key_attributes]
    if unlimited:
        Annotations.of(stack).add_warning_v2(
            "keyhop:keyIndex",
            "KeepIndex and WalkSegments may write more than sentinels in "
            f"{', '.join(unlimited)}, as far as IAM is concerned; name the key attributes of "
            "tables and indexes in keyAttributes, and it refuses items with any other attribute.",
        )
