"""A template with resolved references, and what its roles allow.

The pseudo parameters, the bucket and the queue have example values.
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
"""The functions of EnumerateKeys, which every deployment has."""
KEY_INDEX_FUNCTIONS = ("KeepIndex", "ManageIndex", "ReleaseKeeper", "WalkSegments")
"""The functions that a deployment has if a table has keyIndex."""
SHARDING_FUNCTIONS = ("WriteSharded", "QuerySharded", "MoveShards", "ProposeDrains")
"""The functions that a deployment has if a table is sharded."""
REPORT_FUNCTIONS = ("ExamineTable", "SampleTable", "ShowReport")
"""The functions that a deployment has if a table has report."""
REKEY_FUNCTIONS = ("Replicate", "BackfillItems", "CompareBoth", "CutOver")
"""The functions that a deployment has if rekey has a pair."""
KEY_INDEX_MACHINES = ("BuildKeyIndex", "VerifyKeyIndex", "RemoveKeyIndex")
OWNER_NAMES = {
    "AWS::Lambda::Function": "FunctionName",
    "AWS::StepFunctions::StateMachine": "StateMachineName",
}


@dataclass(frozen=True)
class Deployed:
    """A template, with the queries that the tests need."""

    body: Mapping[str, Any]
    _statements: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def of_type(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the resources of a type, by logical id."""
        return {
            name: resource
            for name, resource in self.body["Resources"].items()
            if resource["Type"] == kind
        }

    def properties_of(self, *kinds: str) -> list[Mapping[str, Any]]:
        """Return the properties of the resources of these types."""
        resources = (resource for kind in kinds for resource in self.of_type(kind).values())
        return [resource["Properties"] for resource in resources]

    def only(self, kind: str) -> Mapping[str, Any]:
        """Return the only resource of a type."""
        (resource,) = self.of_type(kind).values()
        return resource

    def function(self, name: str) -> Mapping[str, Any]:
        """Return a function's properties, resolved."""
        for properties in map(self.resolve, self.properties_of("AWS::Lambda::Function")):
            if properties["FunctionName"].endswith(f"-{name}"):
                return dict(properties)
        raise AssertionError(f"the template has no function {name}")

    @property
    def owners(self) -> list[str]:
        """The functions and state machines, without the stack's name."""
        names = [
            properties[name_property]
            for kind, name_property in OWNER_NAMES.items()
            for properties in self.properties_of(kind)
        ]
        return [name.rpartition("-")[2] for name in names]

    def machine(self, name: str) -> Mapping[str, Any]:
        """Return a state machine's properties, resolved."""
        return self.resolve(self._raw(name))

    def environment(self, function: str) -> dict[str, str]:
        """Return a function's environment variables."""
        return dict(self.function(function)["Environment"]["Variables"])

    @property
    def alarms(self) -> dict[str, dict[str, Any]]:
        """The alarms' properties, resolved, by their names."""
        alarms = map(self.resolve, self.properties_of("AWS::CloudWatch::Alarm"))
        return {alarm["AlarmName"]: alarm for alarm in alarms}

    @property
    def widgets(self) -> dict[str, dict[str, Any]]:
        """The properties of the dashboard's widgets by title, without its texts."""
        widgets = [item for item in self.dashboard["widgets"] if item["type"] != "text"]
        return {item["properties"]["title"]: item["properties"] for item in widgets}

    @property
    def dashboard(self) -> dict[str, Any]:
        """The dashboard's body."""
        body = self.only("AWS::CloudWatch::Dashboard")["Properties"]["DashboardBody"]
        return dict(json.loads(self.resolve(body)))

    def statements(self, owner: str) -> list[dict[str, Any]]:
        """Return all statements on the role of a function or a state machine."""
        if owner not in self._statements:
            self._statements[owner] = self.statements_of(self._raw(owner))
        return self._statements[owner]

    def statements_of(self, properties: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return all statements on the role that a resource's properties name."""
        role = (properties.get("Role") or properties["RoleArn"])["Fn::GetAtt"][0]
        return [
            {
                **self.resolve(statement),
                "Action": _listed(statement["Action"]),
                "Resource": [self.resolve(resource) for resource in _listed(statement["Resource"])],
            }
            for policy in self.properties_of("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
            if {"Ref": role} in policy["Roles"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]

    def allows(self, owner: str, action: str, resource: str, **context: Any) -> bool:
        """Return whether IAM would allow the role the action.

        The context has a value or None per condition key, with `__` for its colon:
        dynamodb__Select="COUNT".
        """
        return self.judge(Call.of(owner, action, resource, **context)).allowed

    def judge(self, call: Call) -> Decision:
        """Return IAM's decision about the caller's role, or raise NotAsked."""
        return simulator().decide(self.statements(call.caller), call)

    def resolve(self, value: Any) -> Any:
        """Replace the intrinsic functions in a value with their results."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
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
            left, right = map(self.resolve, self.body["Conditions"][condition]["Fn::Equals"])
            return self.resolve(yes if left == right else no)
        return {key: self.resolve(item) for key, item in value.items()}

    def _reference(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        kind = self.body["Resources"][name]["Type"]
        if kind == "AWS::S3::Bucket":
            return BUCKET
        if kind == "AWS::SQS::Queue":
            return QUEUE_URL
        if kind == "AWS::StepFunctions::StateMachine":
            machine_name = self.body["Resources"][name]["Properties"]["StateMachineName"]
            return states_arn(f"stateMachine:{machine_name}")
        if kind == "AWS::Lambda::Function":
            return str(self.body["Resources"][name]["Properties"]["FunctionName"])
        return name

    def _arn(self, logical_id: str) -> str:
        resource = self.body["Resources"][logical_id]
        if resource["Type"] == "AWS::S3::Bucket":
            return BUCKET_ARN
        if resource["Type"] == "AWS::Lambda::Function":
            return function_arn(resource["Properties"]["FunctionName"])
        if resource["Type"] == "AWS::SQS::Queue":
            return QUEUE_ARN
        if resource["Type"] == "AWS::DynamoDB::Table":
            return table_arn(resource["Properties"]["TableName"])
        if resource["Type"] == "AWS::Logs::LogGroup":
            return log_group_arn(resource["Properties"]["LogGroupName"]) + ":*"
        return f"arn:of:{logical_id}"

    def _raw(self, name: str) -> Mapping[str, Any]:
        for kind, name_property in OWNER_NAMES.items():
            for properties in self.properties_of(kind):
                if properties[name_property].endswith(f"-{name}"):
                    return properties
        raise AssertionError(f"the template has neither a function nor a state machine {name}")


def table_arn(name: str) -> str:
    """Return the ARN of a table in the account and region of the template."""
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def log_group_arn(name: str) -> str:
    """Return the ARN of a log group, without the `:*` at the end of its attribute Arn."""
    return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{name}"


def function_arn(name: str) -> str:
    """Return the ARN of a function with a physical name."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def states_arn(resource: str) -> str:
    return f"arn:aws:states:{REGION}:{ACCOUNT}:{resource}"


def states_in(definition: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each state of a definition, including those of maps and branches."""
    for name, state in definition["States"].items():
        yield name, state
        for branch in state.get("Branches", ()):
            yield from states_in(branch)
        if "ItemProcessor" in state:
            yield from states_in(state["ItemProcessor"])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
