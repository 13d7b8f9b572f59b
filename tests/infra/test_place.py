"""Tables of other accounts, regions and partitions: what can work is taken, and the rest told."""

import json
import os
import subprocess
import sys

import pytest

from infra import limits
from infra.config import Config, ConfigError
from tests.infra import template as resolved
from tests.infra.template import Deployed

OWN, OTHER = "111122223333", "999988887777"


def arn(region: str, account: str = OWN, partition: str = "aws") -> str:
    return f"arn:{partition}:dynamodb:{region}:{account}:table/Orders"


def key(region: str, partition: str = "aws") -> str:
    return f"arn:{partition}:kms:{region}:{OWN}:key/1a2b"


def check(*tables: object, account: str | None = None, region: str | None = None) -> None:
    limits.check_places(Config.from_context({"tables": list(tables)}).tables, account, region)


@pytest.mark.parametrize(
    ("partition", "region"),
    [("aws", "eu-west-1"), ("aws-cn", "cn-north-1"), ("aws-us-gov", "us-gov-west-1")],
)
@pytest.mark.parametrize("account", [OWN, OTHER])
def test_tables_of_any_account_of_the_partition_may_be_listed(
    partition: str, region: str, account: str
):
    given = {"table": arn(region, account, partition), "kmsKey": key(region, partition)}
    check("Orders2", given, account=OWN, region=region)
    check("Orders2", given)


def test_partitions_whose_regions_nobody_here_knows_are_left_alone():
    check(arn("eusc-de-east-1", partition="aws-eusc"), account=OWN, region="eusc-de-east-1")


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ([arn("cn-north-1")], "the region cn-north-1 is in the partition aws-cn"),
        ([arn("eu-west-1", partition="aws-cn")], "eu-west-1 is in the partition aws."),
        ([{"table": "A-b", "kmsKey": key("us-gov-west-1")}], "in the partition aws-us-gov"),
        ([arn("cn-north-1", partition="aws-cn"), arn("eu-west-1")], "different partitions"),
        ([{"table": arn("eu-west-1"), "kmsKey": key("cn-north-1", "aws-cn")}], "different part"),
        ([arn("cn-north-1", partition="aws-cn")], "beside the deployment's region eu-west-1"),
    ],
)
def test_what_no_credentials_reach_is_refused(tables: list[object], told: str):
    with pytest.raises(ConfigError) as refused:
        check(*tables, account=OWN, region="eu-west-1")
    assert told in str(refused.value)
    assert str(refused.value).startswith("The context field tables ")


@pytest.mark.parametrize("given", [arn("eu-west-1", OTHER), arn("us-east-1")])
def test_a_key_index_is_kept_in_the_tables_own_account_and_region(given: str):
    with pytest.raises(ConfigError, match=f"another account or region .* {OWN} and eu-west-1"):
        check({"table": given, "keyIndex": True}, account=OWN, region="eu-west-1")
    check({"table": arn("eu-west-1"), "keyIndex": True}, account=OWN, region="eu-west-1")
    check({"table": given, "keyIndex": True})  # nobody knows where that is deployed


@pytest.mark.prove
def test_the_app_looks_where_the_credentials_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", OWN)
    monkeypatch.setenv("CDK_DEFAULT_REGION", "cn-north-1")
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps({"tables": arn("eu-west-1")}))
    command = [sys.executable, "app.py"]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "different partitions" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("partition", "host"),
    [
        ("aws", "console.aws.amazon.com"),
        ("aws-cn", "console.amazonaws.cn"),
        ("aws-us-gov", "console.amazonaws-us-gov.com"),
        ("aws-eusc", "console.aws.amazon.com"),
    ],
)
def test_the_dashboard_is_in_the_console_of_the_partition(
    plain: Deployed, monkeypatch: pytest.MonkeyPatch, partition: str, host: str
):
    monkeypatch.setitem(resolved.PSEUDO, "AWS::Partition", partition)
    url = plain.resolve(plain.body["Outputs"]["DashboardUrl"]["Value"])
    assert url.startswith(f"https://{host}/cloudwatch/home?region=")


def test_no_arn_and_no_host_of_one_partition_is_written_into_a_template(sharded: Deployed):
    """But service principals, which have one name everywhere, and the console's hosts."""
    resources = json.dumps(sharded.body["Resources"])
    assert "arn:aws:" not in resources
    hosts = {part.strip('"').split('"')[0] for part in resources.split() if "amazonaws.com" in part}
    services = ("lambda", "states", "events", "cloudwatch", "delivery.logs", "sns", "sqs")
    assert {host.strip('",}]') for host in hosts} <= {f"{one}.amazonaws.com" for one in services}
