"""ReleaseKeeper, the last thing that a deployment makes, and the first that a change or removal
deletes.

BuildKeyIndex gives a table an index, a stream and sentinels that CloudFormation does not know. So a
custom resource refuses to release a table while its key index exists; otherwise it removes the
remaining mappings of the keeper. The same holds for a pair of tables that `keyhop rekey start` has
begun to re-key: the mappings of Replicate exist until `complete` or `cancel`. The resource also
protects the metadata of sharded tables from deletion after the deployment has succeeded; before
that, the protection would block a rollback.

It is in every deployment, because the removal of the last table with keyIndex must be a change of
it. If it were deleted then, that would happen after the update has succeeded, when nothing can be
refused any more.
"""

from typing import Any

from aws_cdk import ArnFormat, CustomResource, Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from .config import Config
from .functions import Functions
from .permissions import Owner, allow, allow_reading_registry, metadata_arns

REPLICATE = "Replicate"
"""The function that follows the streams of pairs, by name."""

RELEASE_SECONDS = 120
RELEASE_PATIENCE = Duration.minutes(15)
"""The time for three attempts of ReleaseKeeper, which Lambda makes minutes apart."""


class Guard(Construct):
    """ReleaseKeeper, and the custom resource KeeperMappings by which CloudFormation asks it.

    Their names are from the time when they handled mappings only: CloudFormation does not let a
    deployed custom resource change its function.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        config: Config,
        bucket: s3.IBucket,
        make: Functions,
    ) -> None:
        super().__init__(scope, construct_id)
        self.keeper_arn = self._function_arn(f"{config.stack_name}-KeepIndex")
        self.release_keeper = self._release_keeper(config, bucket, make)
        on_a_laptop = config.dynamodb_endpoint is not None
        metadata = [table.sharding.metadata for table in config.sharded_tables if table.sharding]
        self._mappings = CustomResource(
            self,
            "KeeperMappings",
            service_token=self.release_keeper.function_arn,
            resource_type="Custom::KeeperMappings",
            properties={
                "Tables": [table.name for table in config.key_index_tables],
                "Protected": [] if on_a_laptop else metadata,
                **self._rekeyed(config),
            },
            service_timeout=RELEASE_PATIENCE,
        )
        self.comes_after(*(child for child in self.node.children if child is not self._mappings))

    def _function_arn(self, name: str) -> str:
        return Stack.of(self).format_arn(
            service="lambda",
            resource="function",
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def _rekeyed(self, config: Config) -> dict[str, Any]:
        """Return the properties about pairs; none without pairs, as before there were any."""
        if not config.rekey:
            return {}
        # The resource has the pairs, so that a change that removes the last pair still names it.
        return {
            "Replicate": self._function_arn(f"{config.stack_name}-{REPLICATE}"),
            "Rekeyed": [[*pair.names] for pair in config.rekey],
        }

    def comes_after(self, *constructs: IConstruct) -> None:
        """Order constructs so that nothing has been deleted when the custom resource refuses."""
        self._mappings.node.add_dependency(*constructs)

    def _release_keeper(
        self, config: Config, bucket: s3.IBucket, make: Functions
    ) -> lambda_.Function:
        function = make.add(
            self,
            "ReleaseKeeper",
            "Lets go of tables, unless their key indexes stand; protects metadata tables",
            {
                "KEYHOP_BUCKET": bucket.bucket_name,
                "KEYHOP_KEEPER": self.keeper_arn,
                "KEYHOP_REMOVAL": f"{config.stack_name}-RemoveKeyIndex",
            },
            memory_mb=256,
            timeout_seconds=RELEASE_SECONDS,
            no_dead_letters="CloudFormation invokes it, waits for its answer, and shows a failure "
            "where the deployment is looked at.",
        )
        allow_reading_registry(function, bucket)  # which key indexes exist
        self.allow_changing_mappings(function)
        if config.sharded_tables:
            allow(
                function,
                "ProtectMetadataTablesFromDeletion",
                "dynamodb:DescribeTable UpdateTable",
                *metadata_arns(function, config.sharded_tables),
            )
        return function

    def allow_finding_mappings(self, owner: Owner) -> None:
        """Allow listing all mappings, because Lambda cannot limit that to some."""
        allow(
            owner,
            "FindTheMappingsOfTheKeeper",
            "lambda:ListEventSourceMappings",
            "*",
            wildcard="A list of mappings knows no resources: Lambda takes no other than *.",
        )

    def allow_changing_mappings(self, owner: Owner, more: str = "") -> None:
        """Allow finding mappings, and on those of the keeper deletion and the actions in `more`."""
        self.allow_finding_mappings(owner)
        mappings = Stack.of(self).format_arn(
            service="lambda",
            resource="event-source-mapping",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        allow(
            owner,
            "ChangeMappingsOfTheKeeperOnly",
            f"lambda:{more}DeleteEventSourceMapping",
            mappings,
            conditions=self.of_the_keeper(),
            wildcard="Lambda names a mapping when it is made; the condition allows those of the "
            "keeper only.",
        )

    def of_the_keeper(self) -> dict[str, Any]:
        """Return the condition for mappings of the keeper."""
        return {"ArnEquals": {"lambda:FunctionArn": self.keeper_arn}}
