"""One place for what all functions have in common: runtime, code, logs, tracing, role."""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from aws_cdk import Duration, IgnoreMode, RemovalPolicy, Size, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import layer
from infra.config import Config
from infra.config_sharding import travels
from infra.config_tables import Table
from infra.permissions import acknowledge

RUNTIME = lambda_.Runtime.PYTHON_3_13
LAMBDAS = layer.ROOT / "lambdas"
NOT_SHIPPED = (
    *("/requirements.txt", "/keyhop/cli/", "/keyhop/__main__.py"),
    *("__pycache__/", "*.pyc", "*.egg-info/", ".*"),
)
"""Of the asset root: what no function needs."""

SERVICE = "enumerate-keys"
"""The dimension `service` of every metric."""

BY_STEP_FUNCTIONS = (
    "Step Functions invokes it synchronously, retries by name and catches the rest: nothing is "
    "invoked asynchronously, which is all that a dead letter target serves."
)
"""Why a function has no dead letter target."""


@dataclass(frozen=True)
class Shape:
    """What sets one function apart."""

    description: str
    memory_mb: int
    timeout_seconds: int = 900
    disk_mb: int = 512
    reserved_concurrency: int | None = None


def own_log_group(scope: Construct, construct_id: str, name: str, config: Config) -> logs.LogGroup:
    """A log group that goes with the stack, and whose entries go after the context's days."""
    group = logs.LogGroup(
        scope, construct_id, log_group_name=name, removal_policy=RemovalPolicy.DESTROY
    )
    # The construct takes only names (EIGHTEEN_MONTHS); what it makes takes days.
    cast(logs.CfnLogGroup, group.node.default_child).retention_in_days = config.logs.retention_days
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
    sharded = {table.given: table.sharding for table in config.tables if table.sharding is not None}
    return {"KEYHOP_SHARDING": json.dumps(travels(sharded))}


def which_worker(config: Config, memory_mb: int | None = None) -> dict[str, str]:
    """The environment's worker, for its price; memory_mb: of another function than ScanSegments."""
    return {
        "KEYHOP_WORKER_MEMORY_MB": str(memory_mb or config.worker.memory_mb),
        "KEYHOP_ARCHITECTURE": config.architecture,
    }


class Functions:
    """Makes the functions; the code and the layer are shared."""

    def __init__(self, scope: Construct, config: Config) -> None:
        self._scope = scope
        self._config = config
        self._code = lambda_.Code.from_asset(
            str(LAMBDAS), exclude=list(NOT_SHIPPED), ignore_mode=IgnoreMode.GIT
        )
        self._layer = lambda_.LayerVersion(
            scope,
            "Packages",
            code=_layer_code(scope),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[lambda_.Architecture.ARM_64, lambda_.Architecture.X86_64],
            description="Third-party packages of the functions (lambdas/requirements.txt)",
        )

    def within(self, scope: Construct) -> "Functions":
        """The same code and layer, for functions in another scope of the stack."""
        other = copy.copy(self)
        other._scope = scope
        return other

    def add(
        self,
        name: str,
        module: str,
        shape: Shape,
        environment: Mapping[str, str],
        no_dead_letters: str = BY_STEP_FUNCTIONS,
    ) -> tuple[lambda_.Function, iam.Role]:
        """A function `name` of lambdas/handlers/`module`.py, and its role with no rights yet.

        no_dead_letters: why it needs no dead letter target, for cdk-nag.
        """
        config = self._config
        physical_name = f"{config.stack_name}-{name}"
        log_group = own_log_group(
            self._scope, f"{name}Logs", f"/aws/lambda/{physical_name}", config
        )
        role = self._role(name, log_group)
        function = lambda_.Function(
            self._scope,
            name,
            function_name=physical_name,
            description=shape.description,
            runtime=RUNTIME,
            architecture=(
                lambda_.Architecture.ARM_64
                if config.architecture == "arm64"
                else lambda_.Architecture.X86_64
            ),
            code=self._code,
            handler=f"handlers.{module}.handler",
            layers=[self._layer],
            role=role,
            memory_size=shape.memory_mb,
            timeout=Duration.seconds(shape.timeout_seconds),
            ephemeral_storage_size=Size.mebibytes(shape.disk_mb),
            reserved_concurrent_executions=shape.reserved_concurrency,
            tracing=lambda_.Tracing.ACTIVE,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=_application_log_level(config.logs.level),
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            environment={**self._common_environment(), **environment},
        )
        _acknowledge(function, role, no_dead_letters)
        return function, role

    def _role(self, name: str, log_group: logs.LogGroup) -> iam.Role:
        role = iam.Role(
            self._scope,
            f"{name}Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"What {self._config.stack_name}-{name} may do",
        )
        # Its own log group only: AWSLambdaBasicExecutionRole would allow all of the account's.
        role.add_to_policy(
            iam.PolicyStatement(
                sid="WriteItsOwnLog",
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[log_group.log_group_arn],
            )
        )
        return role

    def _common_environment(self) -> dict[str, str]:
        config = self._config
        environment = {
            "POWERTOOLS_SERVICE_NAME": SERVICE,
            # The stack's name, so that the dashboards of two deployments do not mix.
            "POWERTOOLS_METRICS_NAMESPACE": config.stack_name,
            "POWERTOOLS_LOG_LEVEL": config.logs.level,
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
    return {
        "DEBUG": lambda_.ApplicationLogLevel.DEBUG,
        "INFO": lambda_.ApplicationLogLevel.INFO,
        "WARNING": lambda_.ApplicationLogLevel.WARN,
        "ERROR": lambda_.ApplicationLogLevel.ERROR,
    }[level]


def _acknowledge(function: lambda_.Function, role: iam.Role, no_dead_letters: str) -> None:
    acknowledge(
        role,
        "X-Ray's actions know no resources: the service takes no other than *.",
        "AwsSolutions-IAM5[Resource::*]",
    )
    acknowledge(function, no_dead_letters, "Serverless-LambdaDLQ")
    acknowledge(
        function,
        "The layer is built and the code is tested for Python 3.13, which is supported until 2029; "
        "a newer runtime is a change to be tried, not taken.",
        "AwsSolutions-L1",
        "Serverless-LambdaLatestVersion",
    )
