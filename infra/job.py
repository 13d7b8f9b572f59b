"""The state machine of a kind of job: it plans, scans groups of segments, and sums up."""

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .config import Config
from .machines import Machine, machine_name, states_arn
from .permissions import IDS_OF_RUNS, allow, allow_objects

DEFINITION = "job"
MAP_LABEL = "ScanGroups"
"""The Label of the distributed map in the definition; part of its children's ARNs."""

WRITE_PARTS = "PutObject AbortMultipartUpload"
"""A large part is uploaded in pieces, which are dropped if one of them fails."""

IDS_OF_EXECUTIONS = "Step Functions names executions, map runs and children when it starts them."

WAITING_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""The rule that notifies Step Functions of the end of an execution (AWS documentation)."""


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
            DEFINITION,
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
