"""Copy settings of the source that CreateTable does not accept to an existing destination.

Each can be copied repeatedly. A refusal ends `create`, which can be run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code, explained
from keyhop.dynamodb.tables import NOT_NOW, Table, ask, request
from keyhop.errors import KeyhopError
from keyhop.rekey.life_cycle.features import SCALING, ClientOf, Features, cause_code

NOT_YET = "ContinuousBackupsUnavailableException"
"""The error of a table that was created a moment ago."""

TARGET = ("MinCapacity", "MaxCapacity", "SuspendedState")
ACTION = ("Schedule", "Timezone", "StartTime", "EndTime", "ScalableTargetAction")


@dataclass(frozen=True, slots=True)
class Copying:
    """Copies settings to an ACTIVE destination with these global indexes."""

    connection: Connection
    features: Features
    destination: Table
    indexes: tuple[str, ...]
    client_of: ClientOf | None = None

    def all(self) -> bool:
        """Copy all settings; return False if it is too early for some of them."""
        try:
            self._insights()
            self._policy()
            self._scaling()
            return self._recovery()
        except ClientError as error:
            if error_code(error) not in NOT_NOW:
                raise
            return False

    def _recovery(self) -> bool:
        days = self.features.recovery_days
        if days is None:
            return True
        specification = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": days}
        try:
            self._about("update_continuous_backups", PointInTimeRecoverySpecification=specification)
        except KeyhopError as error:
            if cause_code(error) == NOT_YET:
                return False
            raise
        return True

    def _insights(self) -> None:
        for index, mode in self.features.insights.items():
            if not index or index in self.indexes:
                where = {"IndexName": index} if index else {}
                how = {"ContributorInsightsMode": mode} if mode else {}
                action = "update_contributor_insights"
                self._about(action, ContributorInsightsAction="ENABLE", **where, **how)

    def _policy(self) -> None:
        if self.features.policy is not None:
            text = moved_policy(self.features.policy, self.features.table.arn, self.destination.arn)
            parameters = {"ResourceArn": self.destination.arn, "Policy": text}
            ask(self.connection, self.destination.name, "put_resource_policy", parameters)

    def _scaling(self) -> None:
        if not self.features.targets or self.client_of is None:
            return
        try:
            client = self.client_of("application-autoscaling")
            for target in self._moved(self.features.targets):
                client.register_scalable_target(**_which(target), **_of(target, TARGET))
            how = "TargetTrackingScalingPolicyConfiguration"
            for policy in self._moved(self.features.policies):
                if (
                    how not in policy
                ):  # likeness names a policy of another kind, which somebody has accepted
                    continue
                client.put_scaling_policy(
                    **_which(policy),
                    PolicyName=policy["PolicyName"],
                    PolicyType=policy["PolicyType"],
                    **{how: policy[how]},
                )
            for action in self._moved(self.features.schedules):
                name = action["ScheduledActionName"]
                client.put_scheduled_action(
                    **_which(action), ScheduledActionName=name, **_of(action, ACTION)
                )
        except (BotoCoreError, ClientError) as error:
            raise explained(
                error,
                self.connection.endpoint,
                self.destination.bare_name,
                service="Application Auto Scaling",
            ) from error

    def _moved(self, described: tuple[Mapping[str, Any], ...]) -> list[dict[str, Any]]:
        """Return the descriptions for the destination, without those of indexes that it lacks."""
        descriptions = []
        for description in described:
            _, _, index = description["ResourceId"].partition("/index/")
            if not index or index in self.indexes:
                resource = f"table/{self.destination.bare_name}" + (
                    f"/index/{index}" if index else ""
                )
                descriptions.append({**description, "ResourceId": resource})
        return descriptions

    def _about(self, operation: str, **parameters: Any) -> None:
        request(self.connection, self.destination.name, operation, **parameters)


def moved_policy(policy: str, source: str, destination: str) -> str:
    """Return a resource policy with the source's ARN replaced by the destination's."""
    for end in ('"', "/"):  # not a longer name that begins alike
        policy = policy.replace(source + end, destination + end)
    return policy


def forget_scaling(client_of: ClientOf | None, table: Table) -> None:
    """Remove auto scaling from a table before its deletion, because it would remain otherwise."""
    if client_of is None or table.throughput is None:
        return
    client = client_of("application-autoscaling")
    names = [f"table/{table.bare_name}"]
    names += [f"{names[0]}/index/{index}" for index in table.global_indexes]
    pages = client.get_paginator("describe_scalable_targets")
    targets = pages.paginate(ServiceNamespace=SCALING, ResourceIds=names)
    for target in list(targets.search("ScalableTargets[]")):
        client.deregister_scalable_target(**_which(target))


def _which(description: Mapping[str, Any]) -> dict[str, Any]:
    return _of(description, ("ServiceNamespace", "ResourceId", "ScalableDimension"))


def _of(description: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: description[name] for name in names if name in description}
