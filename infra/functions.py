"""The common parts of all functions: runtime, code, logs, tracing, role."""

import atexit
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import keyhop
from aws_cdk import Duration, IgnoreMode, RemovalPolicy, Size, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct
from keyhop.dynamodb.units import VARIABLE

from . import layer
from .config import Config
from .network import Network
from .paths import IS_INSTALLED, LAMBDAS
from .permissions import acknowledge, allow

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURES = {"arm64": lambda_.Architecture.ARM_64, "x86_64": lambda_.Architecture.X86_64}
NOT_SHIPPED = (
    *("/handlers/requirements.txt", "/keyhop/__main__.py", "/keyhop/cli/", "/keyhop/docs/"),
    *("__pycache__/", "*.pyc", ".*"),
)
"""The files of the asset root that no function needs."""

SERVICE = "enumerate-keys"
"""The dimension `service` of every metric."""

VCPU_MB = 1769
"""The memory at which a function has one whole vCPU."""

DISK_MB = 4096
"""The disk on which a function makes the keys of an index, and logical keys, distinct."""

BY_STEP_FUNCTIONS = (
    "Step Functions invokes it synchronously, retries by name and catches the rest: nothing is "
    "invoked asynchronously, which is all that a dead letter target serves."
)
"""The reason why a function has no dead letter target."""


def own_log_group(scope: Construct, construct_id: str, name: str, config: Config) -> logs.LogGroup:
    """Return a log group that is deleted with the stack, and has the retention of the context."""
    group = logs.LogGroup(
        scope, construct_id, log_group_name=name, removal_policy=RemovalPolicy.DESTROY
    )
    # The construct takes only names (EIGHTEEN_MONTHS); the resource that it creates takes days.
    cast(logs.CfnLogGroup, group.node.default_child).retention_in_days = config.log_retention_days
    return group


def which_worker(config: Config, memory_mb: int | None = None) -> dict[str, str]:
    """Return the environment with a worker's size, for its price; by default ScanSegments'."""
    return {
        "KEYHOP_WORKER_MEMORY_MB": str(memory_mb or config.worker_memory_mb),
        "KEYHOP_ARCHITECTURE": config.architecture,
    }


def which_limit(config: Config) -> dict[str, str]:
    """Return the environment of functions that begin runs: the limit if an input has none."""
    return {"KEYHOP_MAX_COST": f"{config.max_cost:g}"}


class Functions:
    """Makes functions, in any scope of the stack; all share the code and the layer."""

    def __init__(
        self,
        scope: Construct,
        config: Config,
        packages: lambda_.ILayerVersion | None = None,
        network: Network | None = None,
    ) -> None:
        """Make the functions. `packages` is a layer in place of the one that pip makes at synth."""
        self._config = config
        self._network = network
        self._packages = packages or lambda_.LayerVersion(
            scope,
            "Packages",
            code=_layer_code(scope),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[*ARCHITECTURES.values()],
            description="Third-party packages of the functions (lambdas/handlers/requirements.txt)",
        )
        self._code = lambda_.Code.from_asset(
            str(code_folder()), exclude=list(NOT_SHIPPED), ignore_mode=IgnoreMode.GIT
        )
        self._environment = {
            "POWERTOOLS_SERVICE_NAME": SERVICE,
            # The stack's name, so that the dashboards of two deployments do not mix.
            "POWERTOOLS_METRICS_NAMESPACE": config.stack_name,
            "POWERTOOLS_LOG_LEVEL": config.log_level,
        }
        if config.prices is not None:
            self._environment[VARIABLE] = config.prices
        if config.dynamodb_endpoint:
            for service in ("DYNAMODB", "DYNAMODB_STREAMS"):
                self._environment[f"AWS_ENDPOINT_URL_{service}"] = config.dynamodb_endpoint
        if network:
            self._environment |= network.environment

        self.of_a_worker: dict[str, Any] = {
            "handler": "job.scan_segments",
            "memory_mb": config.worker_memory_mb,
            "timeout_seconds": config.worker_timeout_seconds,
            "disk_mb": DISK_MB,
        }
        """Arguments of `add` for a function that works on groups of segments."""

    def add(
        self,
        scope: Construct,
        name: str,
        description: str,
        environment: Mapping[str, str],
        *,
        handler: str | None = None,
        memory_mb: int = VCPU_MB,
        timeout_seconds: int = 900,
        disk_mb: int = 512,
        reserved_concurrency: int | None = None,
        no_dead_letters: str = BY_STEP_FUNCTIONS,
    ) -> lambda_.Function:
        """Add a function `name`, whose role may only write to its own log.

        Args:
            handler: The module in lambdas/handlers and its function. By default the module is named
                as the function that is added, and its function is `handler`.
            no_dead_letters: The reason for cdk-nag why it needs no dead letter target.
        """
        config = self._config
        physical_name = f"{config.stack_name}-{name}"
        log_group = own_log_group(scope, f"{name}Logs", f"/aws/lambda/{physical_name}", config)
        function = lambda_.Function(
            scope,
            name,
            function_name=physical_name,
            description=description,
            runtime=RUNTIME,
            architecture=ARCHITECTURES[config.architecture],
            code=self._code,
            handler=f"handlers.{handler or f'{snake(name)}.handler'}",
            layers=[self._packages],
            role=_role(scope, f"{name}Role", physical_name, log_group, self._network),
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_seconds),
            ephemeral_storage_size=Size.mebibytes(disk_mb),
            reserved_concurrent_executions=reserved_concurrency,
            tracing=lambda_.Tracing.ACTIVE,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            # INFO for every logLevel: at a higher level Lambda would drop metrics, which are lines
            # without a level. The logger applies logLevel.
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            environment={**self._environment, **environment},
            **(self._network.of_a_function() if self._network else {}),
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


def _role(
    scope: Construct, name: str, function: str, log_group: logs.LogGroup, network: Network | None
) -> iam.Role:
    role = iam.Role(
        scope,
        name,
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        description=f"What {function} may do",
    )
    # Its own log group only: AWSLambdaBasicExecutionRole would allow all of the account's.
    log = "logs:CreateLogStream PutLogEvents"
    allow(role, "WriteItsOwnLog", log, log_group.log_group_arn)
    if network:
        allow(
            role,
            "HaveAddressesInTheNetwork",
            "ec2:CreateNetworkInterface DescribeNetworkInterfaces DescribeSubnets "
            "DeleteNetworkInterface AssignPrivateIpAddresses UnassignPrivateIpAddresses",
            "*",
            wildcard="Lambda makes the interfaces, and asks for these rights on * "
            "(AWSLambdaVPCAccessExecutionRole).",
        )
    acknowledge(
        role,
        "X-Ray's actions know no resources: the service takes no other than *.",
        "AwsSolutions-IAM5[Resource::*]",
    )
    return role


@cache
def code_folder() -> Path:
    """Return the folder of the functions' code, which a wheel has in two packages."""
    if not IS_INSTALLED:
        return LAMBDAS
    folder = Path(tempfile.mkdtemp(prefix="keyhop-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(LAMBDAS / "handlers", folder / "handlers")
    shutil.copytree(Path(keyhop.__file__).parent, folder / "keyhop")
    return folder


def _layer_code(scope: Construct) -> lambda_.Code:
    # `cdk list` and `cdk destroy` need no assets: they get the list of packages in their place.
    if not Stack.of(scope).bundling_required:
        return lambda_.Code.from_asset(
            str(layer.REQUIREMENTS.parent),
            exclude=["/*", "!/requirements.txt"],
            ignore_mode=IgnoreMode.GIT,
        )
    return lambda_.Code.from_asset(str(layer.built()), asset_hash=layer.fingerprint())


def snake(name: str) -> str:
    """Return a function's name as Python writes it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
