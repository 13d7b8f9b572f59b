"""A kind of job: a state machine that plans, has workers scan groups of segments, and sums up."""

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.config import Config
from infra.functions import Shape
from infra.machines import Machine, machine_name, states_arn
from infra.permissions import allow, allow_objects

DEFINITION = "job"
MAP_LABEL = "ScanGroups"
"""The Label of the distributed map in the definition; part of its children's ARNs."""

DISK_MB = 4096
"""The keys of an index, and logical keys, are made distinct on disk."""


def worker_shape(config: Config, description: str, reserved: int | None = None) -> Shape:
    """Of a function that works on groups of segments."""
    memory, timeout = config.worker_memory_mb, config.worker_timeout_seconds
    return Shape(description, memory, timeout, DISK_MB, reserved)


class Job(Machine):
    """The state machine `name` for jobs of `task`, with the rights that the job's skeleton needs.

    functions: by the states that invoke them; what a task needs besides is theirs already.
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
            DEFINITION,
            {
                "Task": task,
                "ResultsBucket": bucket.bucket_name,
                **{f"{state}Arn": one.function_arn for state, one in functions.items()},
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
            *("GetObject", "PutObject", "AbortMultipartUpload"),
        )
        self._allow_states(bucket)
        self._allow_map(fixed)

    def _allow_states(self, bucket: s3.IBucket) -> None:
        allow(
            self,
            "InvokeTheFunctionOfEachState",
            ["lambda:InvokeFunction"],
            [function.function_arn for function in self.functions.values()],
        )
        for why, folder, *actions in (
            ("ReadTheGroupsOfAPlan", "groups", "GetObject"),
            ("NoteWhyAGroupFailed", "failures", "PutObject"),
            (
                *("WriteTheMapsOwnResults", "map-results", "GetObject", "PutObject"),
                *("ListMultipartUploadParts", "AbortMultipartUpload"),
            ),
        ):
            allow(
                self,
                why,
                [f"s3:{action}" for action in actions],
                [bucket.arn_for_objects(f"runs/*/{folder}/*")],
                wildcard="A run's id, and so the names of its objects, are known only when it is "
                "started.",
            )

    def _allow_map(self, fixed: str) -> None:
        children = states_arn(self, "execution", f"{fixed}/{MAP_LABEL}:*")
        ids = "Step Functions names executions, map runs and children when it starts them."
        allow(
            self,
            "StartTheChildrenOfTheMap",
            ["states:StartExecution"],
            [states_arn(self, "stateMachine", fixed)],
        )
        allow(
            self,
            "FollowAndStopTheChildrenOfTheMap",
            ["states:DescribeExecution", "states:StopExecution"],
            [self.executions, children],
            wildcard=ids,
        )
        # A redrive of the run redrives its failed children.
        allow(
            self,
            "RedriveTheChildrenOfTheMap",
            ["states:RedriveExecution"],
            [children],
            wildcard=ids,
        )
        # UpdateMapRun may change how many workers run at once, while they run: each asks for the
        # present number and keeps to its share of maxReadRate.
        allow(
            self.worker,
            "FindTheMapRunThatItBelongsTo",
            ["states:ListMapRuns"],
            [self.executions],
            wildcard=ids,
        )
        allow(
            self.worker,
            "AskHowManyWorkersRunAtOnce",
            ["states:DescribeMapRun"],
            [states_arn(self, "mapRun", f"{fixed}/{MAP_LABEL}:*")],
            wildcard=ids,
        )
