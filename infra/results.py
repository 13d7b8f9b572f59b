"""The bucket of the results, and the table by which Athena reads them."""

from functools import partial

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_glue as glue
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .config import Config
from .permissions import acknowledge

BY_CONTROL_A = "1"
"""Fields end at the character U+0001, Hive's default: JSON escapes it, so a line stays whole."""

KEPT = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Keeps the resource when the stack is deleted, but lets a failed deployment be repeated."""


class Results(Construct):
    """The bucket of all runs, with a Glue table over their parts."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        config: Config,
        bucket: s3.IBucket | None = None,
    ) -> None:
        """Make the bucket. `bucket` is an existing one in its place, with its own lifecycle
        rules.
        """
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
        self._keys_table().add_resource_dependency(database)

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
        """One row a key: a line of DynamoDB-typed JSON; the attribute's name differs by table.

        So the column is the line, and a query takes it apart: json_extract_scalar(line, '$.pk.S').
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
