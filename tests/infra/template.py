"""A template as the account would see it: references resolved, roles asked what they allow.

Pseudo parameters have made-up values, and the bucket and the queue made-up names.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from testing.iam.simulator import Call, Decision, simulator

REGION, ACCOUNT = "eu-west-1", "111122223333"
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": "Keyhop",
}
BUCKET = "the-results"
BUCKET_ARN = f"arn:aws:s3:::{BUCKET}"
QUEUE_URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/the-failures"
QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:the-failures"
FUNCTIONS = ("PlanRun", "ScanSegments", "FinishRun", "VerifyRun", "CleanUp")
"""Those of EnumerateKeys, which are always there."""
KEY_INDEX_FUNCTIONS = ("KeepIndex", "ManageIndex", "ReleaseKeeper", "WalkSegments")
"""Those that are there if a table has keyIndex."""
SHARDING_FUNCTIONS = ("WriteSharded", "QuerySharded", "MoveShards", "ProposeDrains")
"""Those that are there if a table is sharded."""
REPORT_FUNCTIONS = ("ExamineTable", "SampleTable", "ShowReport")
"""Those that are there if a table has report."""
REKEY_FUNCTIONS = ("Replicate", "BackfillItems", "CompareBoth", "CutOver")
"""Those that are there if there is a pair in rekey."""
KEY_INDEX_MACHINES = ("BuildKeyIndex", "VerifyKeyIndex", "RemoveKeyIndex")


@dataclass(frozen=True)
class Deployed:
    """A template, with the few questions that the tests ask."""

    body: Mapping[str, Any]
    _statements: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def of_type(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """The resources of a type, by logical id."""
        return {
            name: resource
            for name, resource in self.body["Resources"].items()
            if resource["Type"] == kind
        }

    def only(self, kind: str) -> Mapping[str, Any]:
        """The one resource of a type."""
        (resource,) = self.of_type(kind).values()
        return resource

    def function(self, name: str) -> Mapping[str, Any]:
        """A function's properties, resolved."""
        for function in self.of_type("AWS::Lambda::Function").values():
            properties = self.resolve(function["Properties"])
            if properties["FunctionName"].endswith(f"-{name}"):
                return properties
        raise AssertionError(f"there is no function {name}")

    @property
    def owners(self) -> list[str]:
        """The functions and state machines, without the stack's name."""
        kinds = {
            "AWS::Lambda::Function": "FunctionName",
            "AWS::StepFunctions::StateMachine": "StateMachineName",
        }
        named = [one["Properties"][kinds[k]] for k in kinds for one in self.of_type(k).values()]
        return [name.rpartition("-")[2] for name in named]

    @property
    def state_machine(self) -> Mapping[str, Any]:
        """EnumerateKeys' properties, resolved."""
        return self.machine("EnumerateKeys")

    def machine(self, name: str) -> Mapping[str, Any]:
        """A state machine's properties, resolved."""
        return self.resolve(self._raw(name))

    def environment(self, function: str) -> dict[str, str]:
        """A function's variables."""
        return dict(self.function(function)["Environment"]["Variables"])

    @property
    def alarms(self) -> dict[str, dict[str, Any]]:
        """The alarms' properties, resolved, by their names."""
        found = (
            self.resolve(alarm["Properties"])
            for alarm in self.of_type("AWS::CloudWatch::Alarm").values()
        )
        return {properties["AlarmName"]: properties for properties in found}

    @property
    def widgets(self) -> dict[str, dict[str, Any]]:
        """What the dashboard's widgets show, by their titles; of two of one title, the graph."""
        shown = [one["properties"] for one in self.dashboard["widgets"] if one["type"] != "text"]
        return {one["title"]: one for one in shown}

    @property
    def dashboard(self) -> dict[str, Any]:
        """The dashboard's body."""
        body = self.only("AWS::CloudWatch::Dashboard")["Properties"]["DashboardBody"]
        return dict(json.loads(self.resolve(body)))

    def statements(self, owner: str) -> list[dict[str, Any]]:
        """All statements on the role of a function or a state machine."""
        if owner not in self._statements:
            self._statements[owner] = self.statements_of(self._raw(owner))
        return self._statements[owner]

    def statements_of(self, properties: Mapping[str, Any]) -> list[dict[str, Any]]:
        """All statements on the role that a resource's properties name."""
        role = (properties.get("Role") or properties["RoleArn"])["Fn::GetAtt"][0]
        return [
            {
                **self.resolve(statement),
                "Action": _listed(statement["Action"]),
                "Resource": [self.resolve(one) for one in _listed(statement["Resource"])],
            }
            for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
            for policy in self.of_type(kind).values()
            if {"Ref": role} in policy["Properties"]["Roles"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]

    def allows(self, owner: str, action: str, resource: str, **context: Any) -> bool:
        """Whether the role may, as IAM would decide; context: values by condition key, or None.

        A condition key is written with `__` for its colon: dynamodb__Select="COUNT".
        """
        return self.judge(Call.of(owner, action, resource, **context)).allowed

    def judge(self, call: Call) -> Decision:
        """What IAM would say to the caller's role; raises NotAsked."""
        return simulator().decide(self.statements(call.caller), call)

    def resolve(self, value: Any) -> Any:
        """Intrinsic functions replaced by what they would be."""
        if isinstance(value, list):
            return [self.resolve(one) for one in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Ref"}:
            return self._reference(value["Ref"])
        if set(value) == {"Fn::GetAtt"}:
            logical_id, attribute = value["Fn::GetAtt"]
            if attribute == "QueueName":
                return QUEUE_ARN.rpartition(":")[2]
            assert attribute in ("Arn", "TopicName"), attribute
            return self._arn(logical_id)
        if set(value) == {"Fn::Join"}:
            separator, parts = value["Fn::Join"]
            return separator.join(self.resolve(part) for part in parts)
        if set(value) == {"Fn::If"}:
            condition, yes, no = value["Fn::If"]
            one, other = map(self.resolve, self.body["Conditions"][condition]["Fn::Equals"])
            return self.resolve(yes if one == other else no)
        return {key: self.resolve(one) for key, one in value.items()}

    def _reference(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        kind = self.body["Resources"][name]["Type"]
        if kind == "AWS::S3::Bucket":
            return BUCKET
        if kind == "AWS::SQS::Queue":
            return QUEUE_URL
        if kind == "AWS::StepFunctions::StateMachine":
            named = self.body["Resources"][name]["Properties"]["StateMachineName"]
            return states_arn(f"stateMachine:{named}")
        if kind == "AWS::Lambda::Function":
            return str(self.body["Resources"][name]["Properties"]["FunctionName"])
        return name

    def _arn(self, logical_id: str) -> str:
        resource = self.body["Resources"][logical_id]
        if resource["Type"] == "AWS::S3::Bucket":
            return BUCKET_ARN
        if resource["Type"] == "AWS::Lambda::Function":
            name = resource["Properties"]["FunctionName"]
            return function_arn(name)
        if resource["Type"] == "AWS::SQS::Queue":
            return QUEUE_ARN
        if resource["Type"] == "AWS::DynamoDB::Table":
            return table_arn(resource["Properties"]["TableName"])
        if resource["Type"] == "AWS::Logs::LogGroup":
            return log_group_arn(resource["Properties"]["LogGroupName"]) + ":*"
        return f"arn:of:{logical_id}"

    def _raw(self, name: str) -> Mapping[str, Any]:
        for kind, named in (
            ("AWS::Lambda::Function", "FunctionName"),
            ("AWS::StepFunctions::StateMachine", "StateMachineName"),
        ):
            for resource in self.of_type(kind).values():
                if resource["Properties"][named].endswith(f"-{name}"):
                    return resource["Properties"]
        raise AssertionError(f"there is no {name}")


def table_arn(name: str) -> str:
    """A table of the account and region that the template is deployed to."""
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def log_group_arn(name: str) -> str:
    """A log group without the `:*` that its attribute Arn ends with."""
    return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{name}"


def function_arn(name: str) -> str:
    """A function, by its physical name."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def states_arn(resource: str) -> str:
    return f"arn:aws:states:{REGION}:{ACCOUNT}:{resource}"


def states_in(definition: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each state of a definition, those of a map's children and of branches as well."""
    for name, state in definition["States"].items():
        yield name, state
        for branch in state.get("Branches", ()):
            yield from states_in(branch)
        if "ItemProcessor" in state:
            yield from states_in(state["ItemProcessor"])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
