"""Checks at synth of what AWS would refuse. Otherwise only a deployment would fail.

A template must be within the quotas for sizes and names: the figures are quotas that cannot be
raised, or their defaults. Values that only the deployment knows, such as the region, count with
their maximum length. The tables must be in accounts and regions that the deployment can use.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keyhop.key_index.sentinel import INDEX
from keyhop.wording import counted

from .config import Table
from .config_values import ConfigError, wrong_in

INLINE_CHARACTERS = 10_240
"""The size of all inline policies of a role together, without whitespace (IAM quotas)."""
MANAGED_CHARACTERS = 6_144
"""The size of one managed policy, without whitespace (IAM quotas)."""
MANAGED_POLICIES = 10
"""The number of them that a role can have (IAM quotas; on request up to 25)."""
ENVIRONMENT_BYTES = 4_096
"""The size of a function's environment. Lambda measures names and values as one JSON object with
escaped quotes, according to its error message ("String measured")."""
TEMPLATE_BYTES = 1_048_576
RESOURCES = 500
OUTPUTS = 200
"""The outputs of a stack. These three are CloudFormation quotas."""
TEXTS = {
    "AWS::Lambda::Function": {"FunctionName": 64, "Description": 256},
    "AWS::Lambda::LayerVersion": {"Description": 256},
    "AWS::StepFunctions::StateMachine": {"StateMachineName": 80, "DefinitionString": 1_048_576},
    "AWS::IAM::Role": {"RoleName": 64, "Description": 1000},
    "AWS::Logs::LogGroup": {"LogGroupName": 512},
    "AWS::CloudWatch::Alarm": {"AlarmName": 255, "AlarmDescription": 1024},
    "AWS::CloudWatch::Dashboard": {"DashboardName": 255},
    "AWS::DynamoDB::Table": {"TableName": 255},
    "AWS::Events::Rule": {"Name": 64, "Description": 512},
}
"""The maximum lengths of texts, by type of resource (each service's API reference)."""

REFERENCE_CHARACTERS = 150
"""The length of an ARN or a name that CloudFormation inserts."""
_PSEUDO = {
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": "ap-southeast-2",
    "AWS::AccountId": "1" * 12,
    "AWS::URLSuffix": "amazonaws.com.cn",
}


def estimated_characters(tables: Sequence[Table]) -> int:
    """Return an upper limit for the length of an ARN in a policy."""
    arn = "arn:aws-us-gov:dynamodb:ap-southeast-2:111122223333:table/"
    return max(REFERENCE_CHARACTERS, *(len(f"{arn}{table.name}/index/{INDEX}") for table in tables))


def check_template(template: Mapping[str, Any], tables: int) -> None:
    """Raise ConfigError if a template with this number of tables exceeds a quota of AWS."""
    excesses = (
        (size / maximum, f"{what} of {size:,}, and AWS takes {maximum:,}")
        for size, maximum, what in _sizes(template)
        if size > maximum
    )
    share, what = max(excesses, default=(0.0, ""))
    if not what:
        return
    # Not all of a template is for tables, so the number is a tenth less than their share.
    fit = int(tables * 0.9 / share)
    raise ConfigError(
        f"The context field tables has {counted(tables, 'table')}, too many for one stack: {what}; "
        f"{fit} of them fit. Deploy a second stack (stackName) for the others."
    )


def check_places(tables: Sequence[Table], account: str | None, region: str | None) -> None:
    """Check the accounts and regions of tables.

    A table of another account is read under its resource policy. It cannot have a key index: the
    owner of the stream has to write a policy for it, which is only possible once the stream is on,
    and BuildKeyIndex turns it on, each time under another name (AWS documentation, "Resource-based
    policy considerations"). Lambda reads streams of the same region only.

    Args:
        account: The account of the deployment; None if it is unknown. The CDK's command passes it
            if there are credentials.
        region: The region of the deployment; None if it is unknown.

    Raises:
        ConfigError: No policy could allow what a table needs.
    """
    places = {f"the deployment's region {region}": _partition(region or "")}
    for arn in (arn for table in tables for arn in (table.arn, table.kms_key) if arn):
        _, partition, _, its_region, *_ = arn.split(":")
        if _partition(its_region) not in (None, partition):
            raise ConfigError(
                f"The context field tables names {arn}, but the region {its_region} is in the "
                f"partition {_partition(its_region)}."
            )
        places[arn] = partition
    by_partition = {partition: name for name, partition in places.items() if partition}
    if len(by_partition) > 1:
        first, second, *_ = by_partition.values()
        raise ConfigError(
            f"The context field tables cannot have {second} beside {first}: they are in different "
            "partitions of AWS, and no credentials are valid in both. Deploy a stack in each."
        )
    for table in tables:
        if table.key_index and table.arn:
            _, _, _, its_region, its_account, _ = table.arn.split(":")
            if account not in (None, its_account) or region not in (None, its_region):
                omitted = "left out for a table of another account or region than the deployment's"
                allowed = f"{omitted}, {account} and {region}: deploy a stack there"
                raise wrong_in(table.given, "keyIndex", True, allowed)


def _sizes(template: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    resources = template["Resources"]
    yield _length(template), TEMPLATE_BYTES, "the template has a length"
    yield len(resources), RESOURCES, "the template has a number of resources"
    yield len(template.get("Outputs", ())), OUTPUTS, "the template has a number of outputs"
    for name, resource in resources.items():
        kind, properties = resource["Type"], resource.get("Properties", {})
        if kind == "AWS::IAM::Role":
            yield from _of_role(name, resources)
        elif kind == "AWS::IAM::ManagedPolicy":
            size = _length(properties["PolicyDocument"])
            yield size, MANAGED_CHARACTERS, f"{name} has a length"
        elif kind == "AWS::Lambda::Function":
            size = _length(properties.get("Environment", {}).get("Variables", {}))
            yield size, ENVIRONMENT_BYTES, f"{name} has an environment"
        for field, maximum in TEXTS.get(kind, {}).items():
            yield len(str(_resolved(properties.get(field, "")))), maximum, f"{name} has a {field}"


def _of_role(role: str, resources: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    def attached(kind: str) -> list[Mapping[str, Any]]:
        policies = (
            resource["Properties"] for resource in resources.values() if resource["Type"] == kind
        )
        return [policy for policy in policies if {"Ref": role} in policy.get("Roles", ())]

    properties = resources[role]["Properties"]
    inline = [*attached("AWS::IAM::Policy"), *properties.get("Policies", ())]
    size = sum(_length(policy["PolicyDocument"]) for policy in inline)
    yield size, INLINE_CHARACTERS, f"{role} has inline policies"
    count = len(attached("AWS::IAM::ManagedPolicy")) + len(properties.get("ManagedPolicyArns", ()))
    yield count, MANAGED_POLICIES, f"{role} has a number of managed policies"


def _length(value: Any) -> int:
    return len(json.dumps(_resolved(value), separators=(",", ":")))


def _resolved(value: Any) -> Any:
    """Return a value with the length that the deployed value will have."""
    if isinstance(value, list):
        return [_resolved(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return separator.join(map(_resolved, parts))
    if set(value) <= {"Ref", "Fn::GetAtt", "Fn::FindInMap", "Fn::If"} and value:
        return _PSEUDO.get(str(value.get("Ref")), "x" * REFERENCE_CHARACTERS)
    return {name: _resolved(part) for name, part in value.items()}


def _partition(region: str) -> str | None:
    """Return the partition of a region; None if its name does not show it."""
    if region.startswith("us-gov-"):
        return "aws-us-gov"
    area, *rest = region.split("-")
    return {"cn": "aws-cn"}.get(area, "aws") if len(rest) == 2 else None
