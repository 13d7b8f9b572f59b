"""`KeyEnumeration`, the base of a deployment, to which key indexes, sharding and more are added.

It has the bucket of the results, and the table by which Athena reads them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from aws_cdk import Annotations, Aws, CfnOutput, Duration, RemovalPolicy, Stack, Token
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_glue as glue
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct
from keyhop.checks import camel

from . import limits
from .config import Config, Table, with_metadata_tables
from .config_values import ConfigError
from .enumeration import Enumeration
from .guard import Guard
from .monitoring import Monitoring
from .network import Network
from .permissions import acknowledge
from .tables import made_in, own_tables

BY_CONTROL_A = "1"
"""The separator of fields, Hive's default, U+0001. JSON escapes it, so a line has one field."""

KEPT = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Keeps the resource when the stack is deleted, but lets a failed deployment be repeated."""


class KeyEnumeration(Construct):
    """A list of the partition keys of tables: EnumerateKeys, its results, dashboard and alarms.

    In your stack:

        keys = KeyEnumeration(self, "Keys", tables=[orders], alarm_topic=topic)

    Tags and permissions boundaries are set with the CDK, on this construct or on the stack.

    Args:
        tables: Constructs of DynamoDB tables, or `keyhop_table(orders, key_index=True)` for a table
            with options.
        alarm_topic: The topic of the alarms; by default the construct creates one.
        results_bucket: The bucket of the runs; by default the construct creates one. Its folders
            runs and key-index must not contain anything else.
        packages: A layer with the packages of lambdas/handlers/requirements.txt; by default pip
            makes one at synth.
        network: A VPC for the functions (docs/how-to/constructs.md has the endpoints that they
            need).
        config: All settings at once, as in app.py.
        settings: Other settings of keyhop.json, as worker_memory_mb=2048. All names begin with
            stack_name, by default the stack's; rekey has the pairs of tables, as
            [keyhop_pair(orders, "OrdersByTenant")].

    Raises:
        ConfigError: A setting is wrong.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        tables: Sequence[dynamodb.ITable | Table] = (),
        alarm_topic: sns.ITopic | None = None,
        results_bucket: s3.IBucket | None = None,
        packages: lambda_.ILayerVersion | None = None,
        network: Network | None = None,
        config: Config | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(scope, construct_id)
        self.config = config = config or _config(Stack.of(self), own_tables(tables), settings)
        self._network = network
        if network:
            network.check(self, "keys", config.tables)
        self._estimate(self)
        self.results = Results(self, "Results", config, results_bucket)
        bucket = self.results.bucket
        self.runs = Enumeration(self, "Enumeration", config, bucket, packages, network)
        self.guard = Guard(self, "KeyIndex", config, bucket, self.runs.make)
        self.watch = Monitoring(self, "Monitoring", config, alarm_topic)
        self.runs.show_on(self.watch)
        tables_of_stack = made_in(Stack.of(self), config.all_tables)
        self.guard.comes_after(self.results, self.runs, self.watch, *tables_of_stack)
        if network:
            # Its function answers CloudFormation by the endpoints and routes of the VPC: a stack
            # that makes both must not delete them before the custom resource.
            self.guard.comes_after(network.vpc)
        start = 'Start an execution of it with {"table": "..."}'
        self.say(
            ("StateMachineArn", self.runs.job.state_machine_arn, start),
            ("ResultsBucketName", bucket.bucket_name, "Each run lies in runs/<its id>/"),
            (
                "DashboardUrl",
                self.watch.url,
                "Progress, rate, throttles, cost, and what to do, by table",
            ),
            ("GlueDatabase", self.results.database_name, "The database of Athena's table"),
            ("GlueTable", self.results.table_name, "Athena's table over the parts of the runs"),
        )
        _say_what_is_open(self, config)

    def is_extended_by(self, extension: Construct, option: str, tables: Sequence[Table]) -> None:
        """Register a construct for tables with an option. Call this before anything else."""
        if not tables:
            raise ConfigError(f"{extension.node.path}: no table of {self.node.path} has {option}.")
        if Stack.of(extension) is not Stack.of(self):
            raise ConfigError(f"{extension.node.path} must be in the stack of {self.node.path}.")
        if self._network:
            self._network.check(extension, option, tables)
        self._estimate(extension)
        self.guard.comes_after(extension)

    def say(self, *outputs: tuple[str, str, str]) -> None:
        """Add outputs to the stack, each with its name, value and description.

        `keyhop runs --stack` finds a deployment by these names. The outputs of a second deployment
        in the same stack have its construct's id as a prefix.
        """
        stack = Stack.of(self)
        for name, value, description in outputs:
            is_taken = stack.node.try_find_child(name) is not None
            CfnOutput(self if is_taken else stack, name, value=value, description=description)

    def _estimate(self, scope: Construct) -> None:
        # With this the CDK moves statements that do not fit into a policy into others.
        estimate = limits.estimated_characters(self.config.all_tables)
        scope.node.set_context("@aws-cdk/aws-iam.arnSizeEstimate", estimate)


class Results(Construct):
    """The bucket of all runs, with a Glue table over their parts."""

    def __init__(
        self, scope: Construct, construct_id: str, config: Config, bucket: s3.IBucket | None = None
    ) -> None:
        """Make the bucket, unless there is one already, which has its own lifecycle rules."""
        super().__init__(scope, construct_id)
        self.bucket: s3.IBucket = bucket or (
            s3.Bucket.from_bucket_name(self, "Bucket", config.results_bucket)
            if config.results_bucket
            else self._own_bucket(config)
        )
        self.database_name = config.stack_name.lower().replace("-", "_")
        self.table_name = "keys"
        database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=self.database_name,
                description=f"The partition keys that {config.stack_name} found",
            ),
        )
        self._keys_table().node.add_dependency(database)

    def _own_bucket(self, config: Config) -> s3.Bucket:
        # SSE-S3 and not SSE-KMS: a customer managed key would cost a request for each of many small
        # objects, and readers of results would need a grant on it in addition to the bucket's.
        bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=False,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="ForgetOldRuns",
                    prefix="runs/",
                    expiration=Duration.days(config.results_retention_days),
                ),
                s3.LifecycleRule(
                    id="DropUnfinishedUploads",
                    # Functions delete their own objects. A map needs its results while it runs.
                    abort_incomplete_multipart_upload_after=Duration.days(
                        config.results_retention_days
                    ),
                ),
            ],
            # It is not emptied on deletion: the CDK needs a function in another runtime for that.
            removal_policy=KEPT if config.keep_results else RemovalPolicy.DESTROY,
        )
        if config.keep_results and bucket.policy:
            bucket.policy.apply_removal_policy(KEPT)  # so that it is still read by TLS only
        acknowledge(
            bucket,
            "Access logs would double the objects of a run; who needs them turns on CloudTrail "
            "data events for the bucket, which also name the caller.",
            "AwsSolutions-S1",
        )
        return bucket

    def _keys_table(self) -> glue.CfnTable:
        """Return a table with one row for each key, which is a line of DynamoDB-typed JSON.

        The column is the whole line, because the name of the attribute differs between tables. A
        query extracts the key with json_extract_scalar(line, '$.pk.S').
        """
        # Links to the parts that count (listing.py): by prefix, a part that a worker uploaded too
        # late would be read as well. A run that is not finished has no links, and so no rows.
        links = f"s3://{self.bucket.bucket_name}/runs/${{run}}/links/"
        column = partial(glue.CfnTable.ColumnProperty, type="string")
        run = column(name="run", comment="The run's id; a query must name it")
        line = column(name="line", comment='As {"customer": {"S": "a"}}')
        return glue.CfnTable(
            self,
            "Keys",
            catalog_id=Aws.ACCOUNT_ID,
            database_name=self.database_name,
            table_input=glue.CfnTable.TableInputProperty(
                name=self.table_name,
                description="The parts of the runs with format jsonl: one key a line, as JSON",
                table_type="EXTERNAL_TABLE",
                partition_keys=[run],
                parameters={
                    "EXTERNAL": "TRUE",
                    "compressionType": "gzip",
                    # Projected: a new run is there at once, without a crawler.
                    "projection.enabled": "true",
                    "projection.run.type": "injected",
                    "storage.location.template": links,
                },
                storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                    columns=[line],
                    location=f"s3://{self.bucket.bucket_name}/runs/",
                    compressed=True,
                    input_format="org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat",
                    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                    serde_info=glue.CfnTable.SerdeInfoProperty(
                        serialization_library="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                        parameters={"serialization.format": BY_CONTROL_A},
                    ),
                ),
            ),
        )


def _config(stack: Stack, tables: Sequence[Table], settings: dict[str, Any]) -> Config:
    name = settings.pop("stack_name", stack.stack_name)
    if Token.is_unresolved(name):
        raise ConfigError(f"The name of {stack.node.path} is not known at synth; give stack_name.")
    values = {camel(field): value for field, value in settings.items()}
    labels = [table.label for table in tables]
    config = Config.from_context({"tables": labels, "stackName": name, **values})
    return replace(config, tables=with_metadata_tables(tables, name))


def _say_what_is_open(scope: Construct, config: Config) -> None:
    def labels(tables: Iterable[Table]) -> str:
        return ", ".join(table.label for table in tables if not table.key_attributes)

    if unnamed := labels(config.tables):
        Annotations.of(scope).add_warning_v2(
            "keyhop:keyAttributes",
            f"IAM lets the functions Scan for any named attributes of {unnamed}; name the key "
            "attributes of tables and indexes in the context field keyAttributes to limit it to "
            "them.",
        )
    if unlimited := labels(config.key_index_tables):
        Annotations.of(scope).add_warning_v2(
            "keyhop:keyIndex",
            f"IAM lets KeepIndex and WalkSegments write more than sentinels into {unlimited}; name "
            "the key attributes of tables and indexes in keyAttributes, and IAM refuses items with "
            "any other attribute.",
        )
