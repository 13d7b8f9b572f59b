"""Tests that tables of other accounts, regions and partitions are accepted if they can work."""

import json
import os
import subprocess
import sys

import pytest

from infra import limits
from infra.config import Config, ConfigError
from tests.infra import template as resolved
from tests.infra.template import Deployed

ACCOUNT, OTHER_ACCOUNT = "111122223333", "999988887777"


def arn(region: str, account: str = ACCOUNT, partition: str = "aws") -> str:
    return f"arn:{partition}:dynamodb:{region}:{account}:table/Orders"


def key(region: str, partition: str = "aws") -> str:
    return f"arn:{partition}:kms:{region}:{ACCOUNT}:key/1a2b"


def check(*tables: object, account: str | None = None, region: str | None = None) -> None:
    limits.check_places(Config.from_context({"tables": list(tables)}).tables, account, region)


@pytest.mark.parametrize(
    ("partition", "region"),
    [("aws", "eu-west-1"), ("aws-cn", "cn-north-1"), ("aws-us-gov", "us-gov-west-1")],
)
@pytest.mark.parametrize("account", [ACCOUNT, OTHER_ACCOUNT])
def test_tables_of_any_account_of_the_partition_may_be_listed(
    partition: str, region: str, account: str
):
    entry = {"table": arn(region, account, partition), "kmsKey": key(region, partition)}
    check("Orders2", entry, account=ACCOUNT, region=region)
    check("Orders2", entry)


def test_a_partition_with_unknown_regions_is_accepted():
    check(arn("eusc-de-east-1", partition="aws-eusc"), account=ACCOUNT, region="eusc-de-east-1")


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ([arn("cn-north-1")], "the region cn-north-1 is in the partition aws-cn"),
        ([arn("eu-west-1", partition="aws-cn")], "eu-west-1 is in the partition aws."),
        ([{"table": "A-b", "kmsKey": key("us-gov-west-1")}], "in the partition aws-us-gov"),
        ([arn("cn-north-1", partition="aws-cn"), arn("eu-west-1")], "different partitions"),
        ([{"table": arn("eu-west-1"), "kmsKey": key("cn-north-1", "aws-cn")}], "different part"),
        ([arn("cn-north-1", partition="aws-cn")], "beside the deployment's region eu-west-1"),
    ],
)
def test_tables_that_no_credentials_can_reach_are_refused(tables: list[object], sentence: str):
    with pytest.raises(ConfigError) as error:
        check(*tables, account=ACCOUNT, region="eu-west-1")
    assert sentence in str(error.value)
    assert str(error.value).startswith("The context field tables ")


@pytest.mark.parametrize("table_arn", [arn("eu-west-1", OTHER_ACCOUNT), arn("us-east-1")])
def test_a_key_index_needs_its_table_in_the_account_and_region_of_the_stack(table_arn: str):
    with pytest.raises(ConfigError, match=f"another account or region .* {ACCOUNT} and eu-west-1"):
        check({"table": table_arn, "keyIndex": True}, account=ACCOUNT, region="eu-west-1")
    check({"table": arn("eu-west-1"), "keyIndex": True}, account=ACCOUNT, region="eu-west-1")
    check({"table": table_arn, "keyIndex": True})  # The stack's account and region are unknown.


@pytest.mark.prove
def test_the_app_checks_the_account_and_region_of_the_credentials(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("CDK_DEFAULT_REGION", "cn-north-1")
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps({"tables": arn("eu-west-1")}))
    command = [sys.executable, "app.py"]
    process = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "different partitions" in process.stderr
    assert "Traceback" not in process.stderr


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


def test_a_template_has_no_arn_and_no_host_of_a_single_partition(sharded: Deployed):
    """Service principals are an exception, because they have the same name everywhere."""
    resources = json.dumps(sharded.body["Resources"])
    assert "arn:aws:" not in resources
    hosts = {part.strip('"').split('"')[0] for part in resources.split() if "amazonaws.com" in part}
    services = ("lambda", "states", "events", "cloudwatch", "delivery.logs", "sns", "sqs")
    assert {host.strip('",}]') for host in hosts} <= {f"{name}.amazonaws.com" for name in services}
