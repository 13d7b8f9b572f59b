"""Capture templates, definitions, and the identities of stateful resources."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.golden.capture.contexts import CONTEXTS
from tests.golden.normal import normal
from tests.infra.conftest import deployed, stack_of


def template(context: str) -> dict[str, Any]:
    """Return the template of a context, without building the layer."""
    return dict(deployed(stack_of(CONTEXTS[context])).body)


def flat(value: Any) -> Any:
    """Replace intrinsic functions with texts: <LogicalId> and <LogicalId.Att>."""
    if isinstance(value, list):
        return [flat(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"Ref"}:
        return f"<{value['Ref']}>"
    if set(value) == {"Fn::GetAtt"}:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    if set(value) == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return separator.join(map(flat, parts))
    return {key: flat(item) for key, item in value.items()}


def templates(context: str) -> dict[str, Any]:
    """Return a template without the definitions of state machines (see definitions.json)."""
    body = normal(template(context))
    for resource in body["Resources"].values():
        if "DefinitionString" in resource.get("Properties", {}):
            resource["Properties"]["DefinitionString"] = "<definition>"
    return dict(body)


def definitions() -> dict[str, Any]:
    """Return the definition of each state machine, with its placeholders filled in."""
    result = {}
    for resource in template("mixed")["Resources"].values():
        if resource["Type"] == "AWS::StepFunctions::StateMachine":
            properties = resource["Properties"]
            names = flat(properties.get("DefinitionSubstitutions", {}))
            definition = re.sub(
                r"\$\{(\w+)\}",
                lambda name, names=names: names[name[1]],
                properties["DefinitionString"],
            )
            result[properties["StateMachineName"].rpartition("-")[2]] = json.loads(definition)
    return result


STATEFUL = {
    *("AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Logs::LogGroup"),
    *("AWS::SNS::Topic", "AWS::Glue::Database", "AWS::Glue::Table"),
}
NAMES = (
    *("FunctionName", "StateMachineName", "RoleName", "DashboardName", "AlarmName", "QueueName"),
    *("LogGroupName", "TableName", "BucketName", "TopicName", "LayerName", "Name"),
    *("ManagedPolicyName", "WorkGroup"),
)


def identities() -> dict[str, Any]:
    """Return the identities of each context's resources."""
    return {context: identities_in(template(context)) for context in CONTEXTS}


def identities_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type, names and deletion policy of each stateful or named resource."""
    identities = {}
    for logical_id, resource in body["Resources"].items():
        properties = resource.get("Properties", {})
        # Glue has the names one level deeper.
        properties = properties.get("TableInput", properties.get("DatabaseInput", properties))
        names = {name: flat(properties[name]) for name in NAMES if name in properties}
        if names or resource["Type"] in STATEFUL:
            policies = {key: resource[key] for key in ("DeletionPolicy",) if key in resource}
            identities[logical_id] = {"type": resource["Type"], **names, **policies}
    return identities
