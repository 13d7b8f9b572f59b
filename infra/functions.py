"""One place for what all functions have in common: runtime, code, logs, tracing, role."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from aws_cdk import Duration, IgnoreMode, RemovalPolicy, Size, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import LAMBDAS, layer
from infra.config import Config
from infra.config_tables import Table, sharding_by_table
from infra.permissions import acknowledge

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURES = {
    "arm64": lambda_.Architecture.ARM_64,
    "x86_64": lambda_.Architecture.X86_64,
}
NOT_SHIPPED = (
    *("/requirements.txt", "/keyhop/cli/", "/keyhop/__main__.py"),
    *("__pycache__/", "*.pyc", "*.egg-info/", ".*"),
)
"""Of the asset root: what no function needs."""

SERVICE = "enumerate-keys"
"""The dimension `service` of every metric."""

VCPU_MB = 1769
"""The memory at which a function has one whole vCPU."""

BY_STEP_FUNCTIONS = (
    "Step Functions invokes it synchronously, retries by name and catches the rest: nothing is "
    "invoked asynchronously, which is all that a dead letter target serves."
)
"""Why a function has no dead letter target."""


@dataclass(frozen=True)
class Shape:
    """What sets one function apart."""

    description: str
    memory_mb: int = VCPU_MB
    timeout_seconds: int = 900
    disk_mb: int = 512
    reserved_concurrency: int | None = None


def own_log_group(scope: Construct, construct_id: str, name: str, config: Config) -> logs.LogGroup:
    """A log group that goes with the stack, and whose entries go after the context's days."""
    group = logs.LogGroup(
        scope, construct_id, log_group_name=name, removal_policy=RemovalPolicy.DESTROY
    )
    # The construct takes only names (EIGHTEEN_MONTHS); what it makes takes days.
    cast(logs.CfnLogGroup, group.node.default_child).retention_in_days = config.log_retention_days
    return group


def which_tables(tables: Sequence[Table]) -> dict[str, str]:
    """The environment's list of tables, as the context names them."""
    return {"KEYHOP_TABLES": json.dumps([table.given for table in tables])}


def which_key_indexes(config: Config) -> dict[str, str]:
    """The environment's tables with a key index, and the sort keys of their sentinels."""
    places = {table.given: table.sentinel_sort_key for table in config.key_index_tables}
    return {"KEYHOP_KEY_INDEXES": json.dumps(places)} if places else {}


def which_sharding(config: Config) -> dict[str, str]:
    """The environment's sharded tables, and how each is sharded."""
    sharded = sharding_by_table(config.tables)
    return {"KEYHOP_SHARDING": json.dumps(sharded)} if sharded else {}


def which_worker(config: Config, memory_mb: int | None = None) -> dict[str, str]:
    """The environment's worker, for its price; memory_mb: of another function than ScanSegments."""
    return {
        "KEYHOP_WORKER_MEMORY_MB": str(memory_mb or config.worker_memory_mb),
        "KEYHOP_ARCHITECTURE": config.architecture,
    }


@dataclass(frozen=True)
class Functions:
    """Makes the functions of a scope; all of a stack share the code and the layer."""

    scope: Construct
    config: Config
    code: lambda_.Code
    packages: lambda_.LayerVersion

    @classmethod
    def first(cls, scope: Construct, config: Config) -> "Functions":
        """With the code, and the layer in `scope`."""
        packages = lambda_.LayerVersion(
            scope,
            "Packages",
            code=_layer_code(scope),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[*ARCHITECTURES.values()],
            description="Third-party packages of the functions (lambdas/requirements.txt)",
        )
        code = lambda_.Code.from_asset(
            str(LAMBDAS), exclude=list(NOT_SHIPPED), ignore_mode=IgnoreMode.GIT
        )
        return cls(scope, config, code, packages)

    def within(self, scope: Construct) -> "Functions":
        """The same code and layer, for functions in another scope of the stack."""
        return replace(self, scope=scope)

    def add(
        self,
        name: str,
        shape: Shape,
        environment: Mapping[str, str],
        module: str | None = None,
        no_dead_letters: str = BY_STEP_FUNCTIONS,
    ) -> lambda_.Function:
        """A function `name`, whose role has no rights but to its own log.

        module: in lambdas/handlers; by default named as the function. no_dead_letters: why it needs
        no dead letter target, for cdk-nag.
        """
        config = self.config
        physical_name = f"{config.stack_name}-{name}"
        log_group = own_log_group(self.scope, f"{name}Logs", f"/aws/lambda/{physical_name}", config)
        function = lambda_.Function(
            self.scope,
            name,
            function_name=physical_name,
            description=shape.description,
            runtime=RUNTIME,
            architecture=ARCHITECTURES[config.architecture],
            code=self.code,
            handler=f"handlers.{module or _snake(name)}.handler",
            layers=[self.packages],
            role=self._role(name, log_group),
            memory_size=shape.memory_mb,
            timeout=Duration.seconds(shape.timeout_seconds),
            ephemeral_storage_size=Size.mebibytes(shape.disk_mb),
            reserved_concurrent_executions=shape.reserved_concurrency,
            tracing=lambda_.Tracing.ACTIVE,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=_application_log_level(config.log_level),
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            environment={**self._common_environment(), **environment},
        )
        acknowledge(function, no_dead_letters, "Serverless-LambdaDLQ")
        acknowledge(
            function,
            "The layer is built and the code is tested for Python 3.13, which is supported until "
            "2029; a newer runtime is a change to be tried, not taken.",
            "AwsSolutions-L1",
            "Serverless-LambdaLatestVersion",
        )
        return function

    def _role(self, name: str, log_group: logs.LogGroup) -> iam.Role:
        role = iam.Role(
            self.scope,
            f"{name}Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"What {self.config.stack_name}-{name} may do",
        )
        # Its own log group only: AWSLambdaBasicExecutionRole would allow all of the account's.
        role.add_to_policy(
            iam.PolicyStatement(
                sid="WriteItsOwnLog",
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[log_group.log_group_arn],
            )
        )
        acknowledge(
            role,
            "X-Ray's actions know no resources: the service takes no other than *.",
            "AwsSolutions-IAM5[Resource::*]",
        )
        return role

    def _common_environment(self) -> dict[str, str]:
        config = self.config
        environment = {
            "POWERTOOLS_SERVICE_NAME": SERVICE,
            # The stack's name, so that the dashboards of two deployments do not mix.
            "POWERTOOLS_METRICS_NAMESPACE": config.stack_name,
            "POWERTOOLS_LOG_LEVEL": config.log_level,
        }
        if config.dynamodb_endpoint:
            environment["AWS_ENDPOINT_URL_DYNAMODB"] = config.dynamodb_endpoint
        return environment


def _layer_code(scope: Construct) -> lambda_.Code:
    # `cdk list` and `cdk destroy` ask for no assets: they get the list of packages as a stand-in.
    if not Stack.of(scope).bundling_required:
        return lambda_.Code.from_asset(
            str(LAMBDAS), exclude=["/*", "!/requirements.txt"], ignore_mode=IgnoreMode.GIT
        )
    return lambda_.Code.from_asset(str(layer.built()), asset_hash=layer.fingerprint())


def _application_log_level(level: str) -> lambda_.ApplicationLogLevel:
    return lambda_.ApplicationLogLevel["WARN" if level == "WARNING" else level]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
