"""The capacity of a key index, on a table with provisioned capacity; on demand it has none.

Only sentinels are in the index, so what it lacks holds up Keyhop's writes and nobody else's. While
it is built it gets what the build may write into it; then little, which scales with the table's
own auto scaling, if there is one.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.capacity import (
    DOLLARS_PER_READ_UNIT_HOUR,
    DOLLARS_PER_WRITE_UNIT_HOUR,
    HOURS_OF_A_MONTH,
    PROVISIONED,
)
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Step, Table
from keyhop.key_index.index import entered_by, step_towards_capacity
from keyhop.key_index.sentinel import INDEX

KEPT_UNITS = 5
"""Of each kind, after the build: five sentinels a second."""

READ, WRITE = "ReadCapacityUnits", "WriteCapacityUnits"

Units = Mapping[str, int]
"""By the names of requests."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """building: of the index while sentinels are put. kept: afterwards. is_scaled: whether the
    table has auto scaling; None if that cannot be seen.
    """

    building: Units
    kept: Units
    is_scaled: bool | None


@dataclass(frozen=True, slots=True)
class Target:
    """What Application Auto Scaling may do with one kind of capacity. most: units. policies: the
    configurations of its target tracking.
    """

    most: int
    policies: tuple[Mapping[str, Any], ...] = ()


Targets = Mapping[str, Target]
"""By READ and WRITE, those that there are."""


def capacity_for(
    own: Units, sentinel_units: float, max_write_rate: float, targets: Targets | None
) -> Capacity:
    """What the index of a table with `own` units gets; targets: the table's, None if not seen.

    sentinel_units: what a sentinel costs, of which one unit is the index's (if its keys have 1 KB
    at most). More than the table can take, or be scaled to, would not be used.
    """
    kept = {name: min(KEPT_UNITS, units) for name, units in own.items()}
    scaled = (targets or {}).get(WRITE)
    most = max(own[WRITE], scaled.most if scaled else 0)
    sentinels = math.ceil(max_write_rate / sentinel_units)
    building = {**kept, WRITE: max(kept[WRITE], min(sentinels, most))}
    return Capacity(building, kept, None if targets is None else bool(targets))


def capacity_plan(capacity: Capacity | None, seconds: float) -> dict[str, Any] | None:
    """The capacity for a plan. seconds: of writing."""
    if capacity is None:
        return None
    return {
        "building": _plain(capacity.building),
        "kept": _plain(capacity.kept),
        "scaled": capacity.is_scaled,
        "dollars_while_building": round(_dollars(capacity.building) * seconds / 3600, 6),
        "dollars_a_month": round(_dollars(capacity.kept) * HOURS_OF_A_MONTH, 2),
        "price": PROVISIONED,
    }


@dataclass(frozen=True, slots=True)
class Scaling:
    """Application Auto Scaling of a table of this account and region. client_of: makes its client;
    without it, nothing can be seen from here.

    Nothing depends on it: what it refuses is as if it were not there.
    """

    client_of: Callable[[], Any] | None = None

    def of_table(self, table: Table) -> Targets | None:
        """The table's own; none on demand, None if they cannot be seen."""
        return {} if table.throughput is None else self._targets(f"table/{table.bare_name}")

    def of_index(self, table: Table) -> Targets | None:
        """The key index's; none on demand, None if they cannot be seen."""
        return {} if table.throughput is None else self._targets(_resource_of_index(table))

    def follow(self, table: Table, least: Units) -> None:
        """Have the index scale from `least` as the table does."""
        resource = _resource_of_index(table)
        try:
            for kind, target in (self.of_table(table) or {}).items():
                client = self._client()
                which = {**_which(resource), "ScalableDimension": f"dynamodb:index:{kind}"}
                client.register_scalable_target(
                    **which, MinCapacity=least[kind], MaxCapacity=max(least[kind], target.most)
                )
                for number, policy in enumerate(target.policies):
                    client.put_scaling_policy(
                        **which,
                        PolicyName=f"keyhop-{kind}-{number}",
                        PolicyType="TargetTrackingScaling",
                        TargetTrackingScalingPolicyConfiguration=dict(policy),
                    )
        except (BotoCoreError, ClientError):
            return

    def forget(self, table: Table) -> None:
        """Take that back: it would outlive the index."""
        resource = _resource_of_index(table)
        try:
            for kind in self.of_index(table) or {}:
                self._client().deregister_scalable_target(
                    **_which(resource), ScalableDimension=f"dynamodb:index:{kind}"
                )
        except (BotoCoreError, ClientError):
            return

    def _client(self) -> Any:
        assert self.client_of is not None
        return self.client_of()

    def _targets(self, resource: str) -> Targets | None:
        if self.client_of is None:
            return None
        try:
            client = self._client()
            targets = client.describe_scalable_targets(
                ServiceNamespace="dynamodb", ResourceIds=[resource]
            )["ScalableTargets"]
            policies = (
                client.describe_scaling_policies(**_which(resource))["ScalingPolicies"]
                if targets
                else ()
            )
        except (BotoCoreError, ClientError):
            return None
        configuration = "TargetTrackingScalingPolicyConfiguration"
        return {
            target["ScalableDimension"].rpartition(":")[2]: Target(
                target["MaxCapacity"],
                tuple(
                    policy[configuration]
                    for policy in policies
                    if configuration in policy
                    and policy["ScalableDimension"] == target["ScalableDimension"]
                ),
            )
            for target in targets
        }


def capacity_of(table: Table, max_write_rate: float, scaling: Scaling) -> Capacity | None:
    """What the key index of a table gets; None on demand."""
    if table.throughput is None:
        return None
    units, targets = entered_by(table).write_units, scaling.of_table(table)
    return capacity_for(table.throughput, units, max_write_rate, targets)


def settle(
    connection: Connection, table: Table, units: Units, scaling: Scaling
) -> tuple[Table, Step]:
    """After a build: the index down to `units`, from where it scales as the table does."""
    table, step = step_towards_capacity(connection, table.name, units)
    if step.done:
        scaling.follow(table, units)
    return table, step


def capacity_now(table: Table, scaling: Scaling) -> dict[str, Any] | None:
    """The index's capacity, by the table's description; None without one, or on demand."""
    index = table.index(INDEX)
    if index is None or table.throughput is None:
        return None
    units, targets = index["ProvisionedThroughput"], scaling.of_index(table)
    return {**_plain(units), "scaled": None if targets is None else bool(targets)}


def _resource_of_index(table: Table) -> str:
    return f"table/{table.bare_name}/index/{INDEX}"


def _which(resource: str) -> dict[str, str]:
    return {"ServiceNamespace": "dynamodb", "ResourceId": resource}


def _plain(units: Units) -> dict[str, int]:
    return {"read": int(units[READ]), "write": int(units[WRITE])}


def _dollars(units: Units) -> float:
    """An hour."""
    return units[READ] * DOLLARS_PER_READ_UNIT_HOUR + units[WRITE] * DOLLARS_PER_WRITE_UNIT_HOUR
