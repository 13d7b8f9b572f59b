"""The capacity of a key index, on a table with provisioned capacity; on demand it has none.

Only sentinels are in the index, so too little capacity delays no writes but Keyhop's. During the
build the index has enough for the build's write rate. Afterwards it has little, which scales like
the table, if the table has auto scaling.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import BUSY, Table, request
from keyhop.dynamodb.units import (
    DOLLARS_PER_READ_UNIT_HOUR,
    DOLLARS_PER_WRITE_UNIT_HOUR,
    HOURS_OF_A_MONTH,
    PROVISIONED,
)
from keyhop.errors import AwsRefused
from keyhop.key_index.index import sentinel_write_units, table_with_index
from keyhop.key_index.sentinel import INDEX

KEPT_UNITS = 5
"""The units of each kind after the build, for five sentinels a second."""

READ, WRITE = "ReadCapacityUnits", "WriteCapacityUnits"

Units = Mapping[str, int]
"""Capacity units by the names READ and WRITE."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of an index while sentinels are put (`building`), and afterwards (`kept`).

    Attributes:
        is_scaled: Whether the table has auto scaling; None if that is unknown.
    """

    building: Units
    kept: Units
    is_scaled: bool | None


Targets = Mapping[str, tuple[int, Sequence[Mapping[str, Any]]]]
"""The auto scaling of a table or an index: of READ and of WRITE, if they have any, the maximum
units, and the configurations of target tracking."""


def capacity_for(
    table_units: Units, sentinel_units: float, max_write_rate: float, targets: Targets | None
) -> Capacity:
    """Return the capacity of the index of a table.

    More than the table can have, or can be scaled to, would not be used.

    Args:
        sentinel_units: The write units of a sentinel, of which the index takes one if its keys have
            at most 1 KB.
        targets: The auto scaling of the table; None if it is unknown.
    """
    kept_units = {name: min(KEPT_UNITS, units) for name, units in table_units.items()}
    scaled_to, _ = (targets or {}).get(WRITE, (0, ()))
    maximum = max(table_units[WRITE], scaled_to)
    sentinels = math.ceil(max_write_rate / sentinel_units)
    building = {**kept_units, WRITE: max(kept_units[WRITE], min(sentinels, maximum))}
    return Capacity(building, kept_units, is_scaled(targets))


def capacity_plan(capacity: Capacity | None, seconds: float) -> dict[str, Any] | None:
    """Return the capacity for a plan with this many seconds of writing."""
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
    """Application Auto Scaling of the tables of this account and region.

    A refusal stops nothing, because the index works without auto scaling. What changes something
    returns the refusal, so that the result of the build or of the removal can report it. Without
    `client_of`, which makes a client, nothing can be seen from here.
    """

    client_of: Callable[[], Any] | None = None

    def targets(self, resource: str) -> Targets | None:
        """Return the auto scaling of a table or an index; None if it cannot be seen."""
        try:
            return None if self.client_of is None else _targets(self.client_of(), resource)
        except (BotoCoreError, ClientError):
            return None

    def follow(self, table: Table, minimum: Units) -> str | None:
        """Let the index scale from `minimum` like the table; return a refusal, or None."""
        if table.throughput is None or self.client_of is None:
            return None
        which = _resource_arguments(_index_resource(table))
        try:
            client = self.client_of()
            for kind, (maximum, policies) in _targets(client, _table_resource(table)).items():
                which["ScalableDimension"] = f"dynamodb:index:{kind}"
                client.register_scalable_target(
                    **which, MinCapacity=minimum[kind], MaxCapacity=max(minimum[kind], maximum)
                )
                for number, policy in enumerate(policies):
                    client.put_scaling_policy(
                        **which,
                        PolicyName=f"keyhop-{kind}-{number}",
                        PolicyType="TargetTrackingScaling",
                        TargetTrackingScalingPolicyConfiguration=dict(policy),
                    )
        except (BotoCoreError, ClientError) as error:
            return f"The index may not scale as its table does: {error}"
        return None

    def forget(self, table: Table) -> str | None:
        """Remove the index's auto scaling, which outlives the index; return a refusal, or None."""
        if table.throughput is None or self.client_of is None:
            return None
        resource = _index_resource(table)
        try:
            client = self.client_of()
            for kind in _targets(client, resource):
                client.deregister_scalable_target(
                    **_resource_arguments(resource), ScalableDimension=f"dynamodb:index:{kind}"
                )
        except (BotoCoreError, ClientError) as error:
            return (
                f"Auto scaling of {resource} may remain, and would scale a later index of this "
                f"name: {error}"
            )
        return None


def _targets(client: Any, resource: str) -> Targets:
    """Return the maximum and the policies of each scaled dimension; raise what boto3 raises."""
    described = client.describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=[resource]
    )["ScalableTargets"]
    if not described:
        return {}
    policies = client.describe_scaling_policies(**_resource_arguments(resource))["ScalingPolicies"]
    configuration = "TargetTrackingScalingPolicyConfiguration"
    return {
        target["ScalableDimension"].rpartition(":")[2]: (
            target["MaxCapacity"],
            [
                policy[configuration]
                for policy in policies
                if configuration in policy
                and policy["ScalableDimension"] == target["ScalableDimension"]
            ],
        )
        for target in described
    }


def is_scaled(targets: Targets | None) -> bool | None:
    """Return whether a policy scales something; None if that is unknown.

    A registered target without a policy never scales.
    """
    return None if targets is None else any(policies for _, policies in targets.values())


def capacity_of(table: Table, max_write_rate: float, scaling: Scaling) -> Capacity | None:
    """Return the capacity for the key index of a table; None for a table on demand."""
    if table.throughput is None:
        return None
    targets = scaling.targets(_table_resource(table))
    return capacity_for(table.throughput, sentinel_write_units(table), max_write_rate, targets)


def settle(
    connection: Connection, table: Table, units: Units, scaling: Scaling
) -> tuple[Table, str | None, str | None]:
    """Lower the index to `units` after a build, and let it scale from there like its table.

    If the service refuses the change (LimitExceededException), this does not wait: capacity can be
    lowered four times a day, and once in each further hour (AWS documentation).

    Returns:
        The table, what to wait for (None if the index has its capacity), and a text about the
        refused changes, if any.
    """
    table = table_with_index(connection, table.name)
    if table.status != "ACTIVE":
        return table, f"waiting for {table.bare_name}, which is {table.status}", None
    index = table.index(INDEX)
    throughput = {} if index is None else index.get("ProvisionedThroughput", {})
    refused: list[str] = []
    if table.throughput and any(throughput.get(kind) != units[kind] for kind in units):
        change = {"Update": {"IndexName": INDEX, "ProvisionedThroughput": dict(units)}}
        try:
            request(connection, table.name, "update_table", GlobalSecondaryIndexUpdates=[change])
        except AwsRefused as error:
            refused.append(f"The index keeps its capacity: {error}")
        except ClientError as error:
            if error_code(error) != BUSY:
                refused.append(f"The index keeps its capacity: {error}")
        if not refused:
            return table, "lowering the capacity of the index", None
    if refusal := scaling.follow(table, units):
        refused.append(refusal)
    return table, None, " ".join(refused) or None


def scale_again(table: Table, max_write_rate: float, scaling: Scaling) -> str | None:
    """Repeat refused changes of an earlier build; return the refusals now, or None."""
    capacity = capacity_of(table, max_write_rate, scaling)
    return scaling.follow(table, capacity.kept) if capacity else None


def capacity_now(table: Table, scaling: Scaling, refused: str | None) -> dict[str, Any] | None:
    """Return the index's capacity by the table's description; None without one, or on demand."""
    index = table.index(INDEX)
    if index is None or table.throughput is None:
        return None
    units = _plain(index["ProvisionedThroughput"])
    scaled = is_scaled(scaling.targets(_index_resource(table)))
    return {**units, "scaled": scaled, "refused": refused}


def _table_resource(table: Table) -> str:
    return f"table/{table.bare_name}"


def _index_resource(table: Table) -> str:
    return f"{_table_resource(table)}/index/{INDEX}"


def _resource_arguments(resource: str) -> dict[str, str]:
    return {"ServiceNamespace": "dynamodb", "ResourceId": resource}


def _plain(units: Units) -> dict[str, int]:
    return {"read": int(units[READ]), "write": int(units[WRITE])}


def _dollars(units: Units) -> float:
    """Return the dollars for one hour."""
    return units[READ] * DOLLARS_PER_READ_UNIT_HOUR + units[WRITE] * DOLLARS_PER_WRITE_UNIT_HOUR
