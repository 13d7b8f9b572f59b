"""The accounts and regions of tables, if synth knows where the stack will be."""

from collections.abc import Sequence

from .config import Table
from .config_values import ConfigError, wrong_in


def check(tables: Sequence[Table], account: str | None, region: str | None) -> None:
    """Check the accounts and regions of tables.

    A table of another account is read under its resource policy. It cannot have a key index: the
    owner of the stream has to write a policy for it, which is only possible once the stream is on,
    and BuildKeyIndex turns it on, each time under another name (AWS documentation, "Resource-based
    policy considerations"). Lambda reads streams of the same region only.

    Args:
        tables: The tables.
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


def _partition(region: str) -> str | None:
    """Return the partition of a region; None if its name does not show it."""
    if region.startswith("us-gov-"):
        return "aws-us-gov"
    area, *rest = region.split("-")
    return {"cn": "aws-cn"}.get(area, "aws") if len(rest) == 2 else None
