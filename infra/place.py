"""Where tables may be, as far as synth knows where the stack will be."""

from collections.abc import Sequence

from .config import Table
from .config_values import ConfigError, wrong_in


def check(tables: Sequence[Table], account: str | None, region: str | None) -> None:
    """Raises ConfigError for what no policy could allow.

    account, region: of the deployment, None if nobody knows them; the CDK's command tells them if
    there are credentials.

    A table of another account is read by its own resource policy. A key index is refused it: who
    owns the stream has to write a policy of its own for it, which is only possible once it is on,
    and it is BuildKeyIndex that turns it on, each time under another name (AWS documentation,
    "Resource-based policy considerations"). And Lambda reads streams of its own region only.
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
    known = {partition: name for name, partition in places.items() if partition}
    if len(known) > 1:
        one, other, *_ = known.values()
        raise ConfigError(
            f"The context field tables cannot have {other} beside {one}: they are in different "
            "partitions of AWS, and no credentials are valid in both. Deploy a stack in each."
        )
    for table in tables:
        if table.key_index and table.arn:
            _, _, _, its_region, its_account, _ = table.arn.split(":")
            if account not in (None, its_account) or region not in (None, its_region):
                here = "left out for a table of another account or region than the deployment's"
                there = f"{here}, {account} and {region}: deploy a stack there"
                raise wrong_in(table.given, "keyIndex", True, there)


def _partition(region: str) -> str | None:
    """None if the region's name does not tell."""
    if region.startswith("us-gov-"):
        return "aws-us-gov"
    area, *rest = region.split("-")
    return {"cn": "aws-cn"}.get(area, "aws") if len(rest) == 2 else None
