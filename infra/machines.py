"""State machines: their definitions, the errors that a state retries, jobs, and schedules."""

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import Annotations, ArnFormat, Aws, Stack, Token
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from .config import Config
from .functions import SERVICE, own_log_group
from .paths import ROOT
from .permissions import IDS_OF_RUNS, acknowledge, allow, allow_objects

DEFINITIONS = ROOT / "statemachines"
JOB = "job"
"""The definition of all jobs."""

MAP_LABEL = "ScanGroups"
"""The Label of the distributed map in the definition; part of its children's ARNs."""

WRITE_PARTS = "PutObject AbortMultipartUpload"
"""A large part is uploaded in pieces, which are dropped if one of them fails."""

IDS_OF_EXECUTIONS = "Step Functions names executions, map runs and children when it starts them."

WAITING_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""The rule that notifies Step Functions of the end of an execution (AWS documentation)."""

REGION = "keyhop:region"
"""The context in which app.py passes the region of the credentials."""

RULES_OF_A_BUS = 300
RULES_OF_REGIONS = {"af-south-1": 100, "eu-south-1": 100}
"""Rules of an event bus (Amazon EventBridge quotas; adjustable)."""


class Machine(sfn.StateMachine):
    """A state machine whose role may only count executions that a person must look at.

    Args:
        file: The file of the definition.
        names: The values of ${Name} in the definition.
    """

    def __init__(
        self, scope: Construct, name: str, config: Config, file: str, names: Mapping[str, str]
    ) -> None:
        physical_name = machine_name(config, name)
        role = iam.Role(
            scope,
            f"{name}Role",
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            description=f"What {physical_name} may do",
        )
        # The CDK adds the permissions for tracing and logging.
        acknowledge(
            role,
            "The actions of X-Ray and of log delivery know no resources: the services take no "
            "other than *.",
            "AwsSolutions-IAM5[Resource::*]",
        )
        super().__init__(
            scope,
            name,
            state_machine_name=physical_name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            # From a string, so that tests see the definition and its names in the template.
            definition_body=sfn.DefinitionBody.from_string(definition(file)),
            definition_substitutions={
                "Partition": Aws.PARTITION,
                "Namespace": config.stack_name,
                "Service": SERVICE,
                "Machine": name,
                **names,
            },
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(
                # Groups of this prefix need no entry in the log resource policy, whose length is
                # limited.
                destination=own_log_group(
                    scope, f"{name}Logs", f"/aws/vendedlogs/states/{physical_name}", config
                ),
                level=sfn.LogLevel.ERROR,
                # Keys can be personal data: none of them in a log.
                include_execution_data=False,
            ),
        )
        allow(
            self,
            "CountTheEndsThatAPersonHasToLookAt",
            "cloudwatch:PutMetricData",
            "*",
            conditions={"StringEquals": {"cloudwatch:namespace": config.stack_name}},
            wildcard="Metrics know no resources: CloudWatch takes no other than *; the condition "
            "allows the deployment's own.",
        )
        acknowledge(
            self,
            "The history of an execution has all events, and is kept for 90 days; the log has the "
            "errors. A run has up to a million children, of which each would log every event.",
            "AwsSolutions-SF1",
        )


def definition(file: str) -> str:
    """Return the definition in `file`, with its lists of retries."""
    text = (DEFINITIONS / f"{file}.asl.json").read_text()
    return json.dumps(json.loads(text, object_hook=with_retries))


def machine_name(config: Config, name: str) -> str:
    """Return the physical name of the deployment's state machine `name`."""
    return f"{config.stack_name}-{name}"


def states_arn(scope: Construct, resource: str, name: str) -> str:
    """Return an ARN of Step Functions in the stack's account and region."""
    return Stack.of(scope).format_arn(
        service="states",
        resource=resource,
        resource_name=name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


class Job(Machine):
    """The state machine `name` for jobs of `task`, with the permissions that all jobs need.

    `functions` has the function of each state, with the permissions that only the task needs.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        config: Config,
        bucket: s3.IBucket,
        task: str,
        functions: Mapping[str, lambda_.Function],
    ) -> None:
        super().__init__(
            scope,
            name,
            config,
            JOB,
            {
                "Task": task,
                "ResultsBucket": bucket.bucket_name,
                **{f"{state}Arn": function.function_arn for state, function in functions.items()},
            },
        )
        self.functions = functions
        self.worker = functions["ScanSegments"]
        # The machine's name is fixed, so its ARN is known here without a reference to it: a
        # reference would make a cycle of role and machine.
        fixed = machine_name(config, name)
        self.executions = states_arn(self, "execution", f"{fixed}:*")
        allow_objects(
            self.worker,
            bucket,
            "WritePartsAndCommitsAndReadTheCommitsBefore",
            f"GetObject {WRITE_PARTS}",
        )
        self._allow_states(bucket)
        self._allow_map(fixed)
        allow(
            functions["CleanUp"],
            f"EndItsStateIn{name}ByTheToken",
            "states:SendTaskFailure SendTaskSuccess",
            states_arn(self, "stateMachine", fixed),
        )

    def is_waited_for_by(self, machine: Machine, what: str) -> None:
        """Let a machine start executions and wait for their end. `what` names them in Sids."""
        itself = self.state_machine_arn
        allow(machine, f"{what}OverTheTable", "states:StartExecution", itself)
        allow(
            machine,
            f"WaitForTheEndOfA{what}OrStopIt",
            "states:DescribeExecution StopExecution",
            self.executions,
            wildcard=f"Step Functions names a {what.lower()} when it starts it.",
        )
        rule = Stack.of(self).format_arn(
            service="events", resource="rule", resource_name=WAITING_RULE
        )
        hear = f"HearThatA{what}HasEnded"
        allow(machine, hear, "events:PutTargets PutRule DescribeRule", rule)

    def _allow_states(self, bucket: s3.IBucket) -> None:
        arns = [function.function_arn for function in self.functions.values()]
        allow(self, "InvokeTheFunctionOfEachState", "lambda:InvokeFunction", *arns)
        write_in_parts = "GetObject PutObject ListMultipartUploadParts AbortMultipartUpload"
        for why, folder, actions in (
            ("ReadTheGroupsOfAPlan", "groups", "GetObject"),
            ("NoteWhyAGroupFailed", "failures", "PutObject"),
            ("WriteTheMapsOwnResults", "map-results", write_in_parts),
        ):
            objects = bucket.arn_for_objects(f"runs/*/{folder}/*")
            allow(self, why, f"s3:{actions}", objects, wildcard=IDS_OF_RUNS)

    def _allow_map(self, fixed: str) -> None:
        itself = states_arn(self, "stateMachine", fixed)
        children = states_arn(self, "execution", f"{fixed}/{MAP_LABEL}:*")
        map_runs = states_arn(self, "mapRun", f"{fixed}/{MAP_LABEL}:*")
        follow = "states:DescribeExecution StopExecution"
        allow(self, "StartTheChildrenOfTheMap", "states:StartExecution", itself)
        for owner, why, actions, *resources in (
            (self, "FollowAndStopTheChildrenOfTheMap", follow, self.executions, children),
            # A redrive of the run redrives its failed children.
            (self, "RedriveTheChildrenOfTheMap", "states:RedriveExecution", children),
            # UpdateMapRun may change how many workers run at once, while they run: each asks for
            # the present number and keeps to its share of maxReadRate.
            (self.worker, "FindTheMapRunThatItBelongsTo", "states:ListMapRuns", self.executions),
            (self.worker, "AskHowManyWorkersRunAtOnce", "states:DescribeMapRun", map_runs),
        ):
            allow(owner, why, actions, *resources, wildcard=IDS_OF_EXECUTIONS)


def start_regularly(
    scope: Construct,
    what: str,
    machine: Machine,
    starts: Mapping[str, tuple[str | None, Mapping[str, Any]]],
    description: str,
    if_missed: str,
) -> list[events.Rule]:
    """Add a rule for each start that has a schedule, and return the rules in this order.

    Args:
        what: The noun in all names, such as "Verification".
        starts: The schedule as EventBridge writes it, and the input of the execution, by the label
            of a table.
        description: The description of a rule, with {} for the label.
        if_missed: The reason why starts that EventBridge gives up after a day need no queue.
    """
    if not any(schedule for schedule, _ in starts.values()):
        return []
    role = iam.Role(
        scope,
        f"{what}ScheduleRole",
        assumed_by=iam.ServicePrincipal("events.amazonaws.com"),
        description=f"Starts {machine.node.id} by a schedule",
    )
    allow(role, f"Start{what}s", "states:StartExecution", machine.state_machine_arn)
    rules = []
    for label, (schedule, execution_input) in starts.items():
        if not schedule:
            continue
        target = targets.SfnStateMachine(
            machine,
            input=events.RuleTargetInput.from_object({**execution_input, "scheduled": True}),
            role=role.without_policy_updates(),
        )
        rule = events.Rule(
            scope,
            f"{what}-{label}",
            description=description.format(label),
            schedule=events.Schedule.expression(schedule),
            targets=[target],
        )
        acknowledge(rule, if_missed, "Serverless-EventBusDLQ")
        rules.append(rule)
    warn_of_many_rules(scope, len(rules))
    return rules


def warn_of_many_rules(scope: Construct, added: int) -> None:
    """Add one warning to a stack if its last `added` rules exceed the quota of an event bus.

    It is not an error, because other stacks use the same bus, and the quota can be raised.
    """
    stack = Stack.of(scope)
    region = str(stack.node.try_get_context(REGION) or "")
    if not Token.is_unresolved(stack.region):
        region = stack.region
    quota = RULES_OF_REGIONS.get(region, RULES_OF_A_BUS)
    count = sum(isinstance(construct, events.Rule) for construct in stack.node.find_all())
    if count - added <= quota < count:
        Annotations.of(stack).add_warning_v2(
            "keyhop:rules",
            f"The schedules of this stack make more than {quota:,} EventBridge rules, which is the "
            f"default quota of an event bus{f' in {region}' if region else ''}, for all stacks "
            "together. Before you deploy, have it raised (Service Quotas, Amazon EventBridge, "
            "Rules), or turn off schedules that you do not need.",
        )


# A definition names a policy, as "${RetryOfScan}". Each policy names its errors: a retry of
# everything would try a wrong input over and over.
OF_LAMBDA = (
    *("Lambda.ServiceException", "Lambda.AWSLambdaException"),
    *("Lambda.SdkClientException", "Lambda.ClientExecutionTimeoutException"),
)
NOT_READY = (
    *("Lambda.CodeArtifactUserPendingException", "Lambda.ResourceNotReadyException"),
    "Lambda.ResourceConflictException",
)
"""The errors of Invoke while Lambda prepares a function that has not been used for weeks, its
network interfaces in a VPC, or an update. It is ready after 40 to 110 seconds (observed by others).
CodeArtifactUserFailedException needs a new deployment, so it is not here."""

CRASHED = (
    *("Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory"),
    "States.Timeout",
)
OF_STEP_FUNCTIONS = (
    *("StepFunctions.ExecutionLimitExceeded", "StepFunctions.ExecutionLimitExceededException"),
    *("StepFunctions.AWSStepFunctionsException", "StepFunctions.SdkClientException"),
)
"""The first has two names, because the examples of AWS write it without `Exception`."""


def _retry(
    errors: tuple[str, ...], interval: int, attempts: int, max_delay: int = 0, backoff: float = 2
) -> dict[str, Any]:
    """Return one rule. With `max_delay` it waits a random part of the seconds between attempts."""
    random = {"MaxDelaySeconds": max_delay, "JitterStrategy": "FULL"} if max_delay else {}
    return {
        "ErrorEquals": [*errors],
        "IntervalSeconds": interval,
        "BackoffRate": backoff,
        "MaxAttempts": attempts,
        **random,
    }


NO_ROOM = _retry(("Lambda.TooManyRequestsException",), 2, 250, max_delay=300, backoff=1.5)
"""The rule for a lack of concurrency, because others use that of the account or a reservation.
Waiting for a turn can take hours. It is a separate rule, so that it uses no attempts of another
one. A retry is a state transition, which is paid for: a thousand waiting executions make some 400
transitions per minute."""


WAKING = _retry(NOT_READY, 5, 6)
"""The rule for functions that are not ready: five minutes, with separate attempts."""


def _failed(*ours: str) -> dict[str, Any]:
    """Return a rule for failures of Lambda, and for our transient errors."""
    return _retry((*OF_LAMBDA, *ours), 2, 6, max_delay=60)


POLICIES: dict[str, list[dict[str, Any]]] = {
    "RetryOfTask": [NO_ROOM, WAKING, _failed("StoreUnavailable"), _retry(CRASHED, 5, 2)],
    "RetryOfScan": [
        NO_ROOM,
        WAKING,
        _retry(OF_LAMBDA, 2, 8, max_delay=120),
        _retry(CRASHED, 5, 5, max_delay=60),
        _retry(("GaveUp", "NoProgress", "Unreachable", "StoreUnavailable"), 30, 5, max_delay=600),
    ],
    "RetryOfVerify": [
        NO_ROOM,
        WAKING,
        _failed("StoreUnavailable"),
        _retry((*CRASHED, "GaveUp", "Unreachable"), 30, 3),
    ],
    # None of our errors: it fails with the error of the run. A crash is not retried but caught, and
    # the execution then ends with the error of the run from the failed state.
    "RetryOfCleanUp": [NO_ROOM, WAKING, _failed()],
    "RetryOfStep": [
        NO_ROOM,
        WAKING,
        _failed("StoreUnavailable", "Unreachable", "GaveUp"),
        _retry(CRASHED, 5, 2),
    ],
    "RetryOfMove": [NO_ROOM, WAKING, _failed("Unreachable", "GaveUp"), _retry(CRASHED, 5, 2)],
    "RetryOfMap": [_retry(("States.ItemReaderFailed", "States.ResultWriterFailed"), 5, 2)],
    "RetryOfNote": [
        {**_retry(("S3.SdkClientException", "S3.S3Exception"), 2, 4), "JitterStrategy": "FULL"}
    ],
    "RetryOfAlarm": [
        {
            **_retry(("CloudWatch.SdkClientException", "CloudWatch.CloudWatchException"), 2, 4),
            "JitterStrategy": "FULL",
        }
    ],
    "RetryOfWalk": [_retry(OF_STEP_FUNCTIONS, 5, 6, max_delay=60)],
}


def with_retries(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with the rules in place of the name of its policy."""
    if isinstance(name := state.get("Retry"), str):
        return {**state, "Retry": POLICIES[name.strip("${}")]}
    return state
