"""Check the parts of tests/live that no laptop can show.

The suite removes what it created and nothing else: tags and ids identify its tables and stacks. It
also waits for a redrive.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import boto3
import pytest
from aws_cdk import App
from botocore.exceptions import ClientError
from moto import mock_aws

from infra.network import ENDPOINTS
from tests.live import leftovers, run
from tests.live import stack as stacks
from tests.live.around import OUTER_SERVICES
from tests.live.catalogue import CHECKS, Check
from tests.live.cost import UNKNOWN, WORKER, expected
from tests.live.deployed import Deployed, deploy_command
from tests.live.fixtures import Fixture, OfOwnStack, comparable, fixtures, size_of
from tests.live.reader_app import RETURN_KEY, Reader
from tests.live.report import NOT_FINISHED, Differs, Refused, Report, expect, expect_keys
from tests.live.runs import Runs
from tests.live.stack import NAME, REVIEWED, OwnStack
from tests.live.vpc_app import GATEWAYS, Enclosed
from tests.live.ways import AWS, LAPTOP, ways_of
from tests.live.workshop import TAG, Workshop

FAST = replace(AWS, settle_seconds=0.0, poll_seconds=0.0, last_write_seconds=0.0)
TABLE = Fixture("mine-keyhop-live-plain", "plain", sort=None)


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("dynamodb", region_name="us-east-1")


def create(dynamodb: Any, name: str, **more: Any) -> None:
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        **more,
    )


def names(dynamodb: Any) -> list[str]:
    return list(dynamodb.list_tables()["TableNames"])


def make_table(dynamodb: Any, suite: str) -> Workshop:
    workshop = Workshop(dynamodb, suite, FAST)
    workshop.make([TABLE])
    return workshop


def forget_table(workshop: Workshop) -> None:
    """Act as if the suite had been interrupted before CreateTable answered."""
    workshop._made[TABLE.name] = None


def test_a_table_is_made_loaded_and_removed(dynamodb: Any) -> None:
    workshop = make_table(dynamodb, "suite-1")
    assert dynamodb.scan(TableName=TABLE.name, Select="COUNT")["Count"] == len(TABLE.items)
    assert workshop.remove() == []
    assert names(dynamodb) == []


def test_a_table_whose_creation_was_not_answered_is_removed_by_its_tag(dynamodb: Any) -> None:
    workshop = make_table(dynamodb, "suite-1")
    forget_table(workshop)
    assert workshop.remove() == []
    assert names(dynamodb) == []


def test_a_table_of_another_start_stays(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(dynamodb, "suite-1")
    second = Workshop(dynamodb, "suite-2", FAST)
    forget_table(second)
    monkeypatch.setattr("tests.live.workshop.REMOVAL_SECONDS", 0.05)
    (message,) = second.remove()
    assert message == f"table {TABLE.name}: it was not made by this start of the suite"
    assert names(dynamodb) == [TABLE.name]


def test_a_table_that_was_replaced_stays(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = make_table(dynamodb, "suite-1")
    dynamodb.delete_table(TableName=TABLE.name)
    make_table(dynamodb, "suite-1")
    monkeypatch.setattr("tests.live.workshop.REMOVAL_SECONDS", 0.05)
    assert len(workshop.remove()) == 1
    assert names(dynamodb) == [TABLE.name]


def test_a_name_that_is_taken_is_refused_and_not_removed(dynamodb: Any) -> None:
    make_table(dynamodb, "suite-1")
    second = Workshop(dynamodb, "suite-2", FAST)
    with pytest.raises(Refused, match="There are tables already"):
        second.refuse_existing([TABLE.name])
    with pytest.raises(Refused, match="made by somebody else"):
        second.make([TABLE])
    assert second.remove() == []
    assert names(dynamodb) == [TABLE.name]


def test_an_undeletable_table_is_reported(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = make_table(dynamodb, "suite-1")

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "DeleteTable")

    monkeypatch.setattr(dynamodb, "delete_table", refuse)
    (message,) = workshop.remove()
    assert TABLE.name in message
    assert "AccessDeniedException" in message


def test_a_busy_table_is_deleted_later(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is busy while an index is added to it, for example."""
    workshop, delete = make_table(dynamodb, "suite-1"), dynamodb.delete_table
    refusals = iter(["ResourceInUseException", "LimitExceededException"])

    def refuse_at_first(**arguments: Any) -> Any:
        if code := next(refusals, None):
            raise ClientError({"Error": {"Code": code}}, "DeleteTable")
        return delete(**arguments)

    monkeypatch.setattr(dynamodb, "delete_table", refuse_at_first)
    assert workshop.remove() == []
    assert names(dynamodb) == []


def test_a_protected_table_of_ours_is_deleted(dynamodb: Any) -> None:
    """The shard metadata of a deleted stack is such a table."""
    create(
        dynamodb, "shards", DeletionProtectionEnabled=True, Tags=[{"Key": TAG, "Value": "suite-1"}]
    )
    workshop = Workshop(dynamodb, "suite-1", FAST)
    workshop.expect(["shards"])
    assert workshop.remove() == []
    assert names(dynamodb) == []


class StepFunctions:
    """Step Functions that shows an execution, and a redrive, with some delay."""

    class exceptions:  # noqa: N801
        class ExecutionDoesNotExist(Exception):
            pass

    def __init__(self) -> None:
        self.redriven: list[str] = []
        self.looks = 0

    def start_execution(self, **_: Any) -> None:
        pass

    def redrive_execution(self, executionArn: str) -> None:  # noqa: N803
        self.redriven.append(executionArn)

    def describe_execution(self, executionArn: str) -> dict[str, Any]:  # noqa: N803
        self.looks += 1
        if self.looks == 1:
            raise self.exceptions.ExecutionDoesNotExist
        if self.looks < 4:
            return {"status": "ABORTED", "redriveCount": 0}
        return {"status": "RUNNING" if self.looks < 6 else "SUCCEEDED", "redriveCount": 1}


def test_a_redrive_is_awaited_before_its_outcome_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the status from before the redrive would be taken for its end."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:Keyhop-EnumerateKeys"
    runs = Runs(Deployed(arn, "bucket", [], None), "s", FAST)  # type: ignore[arg-type]
    states = runs._states = StepFunctions()
    run = runs.start("run", {})
    runs.redrive(run)
    assert states.redriven == [arn.replace("stateMachine", "execution") + ":keyhop-live-s-run"]
    assert runs.outcome(run)["status"] == "SUCCEEDED"


def test_only_local_endpoints_get_the_settings_of_a_laptop() -> None:
    remote = "https://dynamodb.eu-west-1.amazonaws.com"
    local = "http://127.0.0.1:8000"
    assert ways_of([remote, remote]) is AWS
    assert ways_of([local, local]) is LAPTOP
    with pytest.raises(Refused):
        ways_of([local, remote])
    assert AWS.empty_page_units == 0.5
    assert AWS.keeps_tags
    assert AWS.has_table_id
    assert AWS.lacks == {}


CASES = {name: Check(f"what is {name}") for name in ("right", "different", "broken")}


def test_a_broken_check_fails_alone(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(checks=CASES)
    report.check("right", lambda: "a note")
    report.check("different", lambda: expect(False, "was seen"), "a table")
    report.check("broken", lambda: str({}["missing"]))
    failed = ["different [a table]: what is different", "broken: what is broken"]
    assert (report.passed, report.failed) == (1, failed)
    assert report.summary() == f"2 of 3 checks failed:\n  {failed[0]}\n  {failed[1]}"
    assert "Differs: was seen" in capsys.readouterr().out


def test_skipped_checks_are_reported_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    checks = {**CASES, "costly": Check("what is costly", "money")}
    report = Report({"money": "there is none"}, checks)
    report.check("costly", lambda: pytest.fail("was looked at"))
    report.check("costly", lambda: pytest.fail("was looked at"))
    report.check("right", lambda: None)
    report.skip_the_rest("not today")
    assert report.skipped == {
        "costly": "there is none",
        "different": "not today",
        "broken": "not today",
    }
    output = capsys.readouterr().out
    assert output.count("skipped costly") == 1
    assert "All 1 checks passed.\n3 were skipped:" in report.summary()
    with pytest.raises(KeyError):
        report.check("unknown", lambda: None)


def test_only_selected_checks_run() -> None:
    report = Report(checks=CASES, only={"right"})
    report.check("broken", lambda: pytest.fail("was looked at"))
    report.check("right", lambda: None)
    report.skip_the_rest("another reason")
    assert report.skipped == dict.fromkeys(("broken", "different"), "not among ONLY")


def test_every_ability_that_a_check_needs_is_one_that_a_laptop_lacks() -> None:
    assert {check.needs for check in CHECKS.values()} - {None} == LAPTOP.lacks.keys()


def test_keys_are_compared_exactly() -> None:
    expect_keys([1, 2, 3], {1, 2, 3})
    with pytest.raises(Differs) as differs:
        expect_keys([1, 1, 4], {1, 2, 3})
    assert "2 missing: {2, 3}" in str(differs.value)
    assert "1 surplus: {4}" in str(differs.value)
    assert "1 more than once: {1}" in str(differs.value)


def test_names_of_tables_follow_from_the_prefix_alone() -> None:
    tables = fixtures("Mine.")
    assert len({table.name for table in tables}) == len(tables) == 12
    assert all(table.name.startswith("Mine.keyhop-live-") for table in tables)
    assert tables[0].label == "s-s"


def test_the_large_collection_exceeds_a_page() -> None:
    """A page of the service is 1 MB, and each item costs half a read unit."""
    for table in fixtures("x-"):
        if table.shape == "hops":
            sizes = [
                size_of(item)
                for item in table.items
                if comparable(item["pk"]) == comparable(table.large)
            ]
            assert sum(sizes) > 1_050_000
            assert max(map(size_of, table.items)) <= 4096


def test_a_stack_of_its_own_is_allowed_its_tables_and_no_others() -> None:
    tables = OfOwnStack.of("x-", "arn:aws:kms:eu-west-1:111122223333:key/k")
    base = "x-keyhop-live-"
    context = {entry["table"]: entry for entry in tables.context()}
    kept_names = ("kept-off", "kept-on", "kept-small", "kept-key")
    names = (*kept_names, "wide", "quick", "hot", "each", "days", "scheduled")
    assert context.keys() == {base + name for name in names}
    assert context[f"{base}kept-key"]["kmsKey"].endswith("key/k")
    assert context[f"{base}hot"]["sharding"]["metadata"] == tables.shards.name
    assert tables.shards not in tables.made(stack_makes_tables=True)
    assert tables.shards in tables.made(stack_makes_tables=False)
    assert len(OfOwnStack.of("x-", None).kept) == 3


def test_the_results_are_a_table_for_the_page_of_claims(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()

    def differs() -> None:
        raise Differs("seen")

    report.check("hop", lambda: None, "one")
    report.check("hop", differs, "another")
    report.check("run", lambda: "note")
    rows = report.table("eu-west-1", {"hop": 0.01}).strip().splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    today = datetime.now(UTC).date().isoformat()
    claim = {name: CHECKS[name].shows for name in ("hop", "run")}
    assert cells == [
        ["`hop`", claim["hop"], "**fails**", today, "eu-west-1", "$0.0100"],
        ["`run`", claim["run"], "holds", today, "eu-west-1", "unknown"],
    ]


def test_an_interrupted_check_has_not_passed(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()

    def interrupted() -> None:
        raise KeyboardInterrupt

    report.check("hop", lambda: None, "one")
    with pytest.raises(KeyboardInterrupt):
        report.check("hop", interrupted, "another")
    assert report.made == {"hop": NOT_FINISHED}


def test_a_table_of_another_maker_is_removed_by_its_tag_only(dynamodb: Any) -> None:
    """A re-key creates such tables, and the suite may be interrupted before they exist."""
    for name, suite in (("ours", "s"), ("theirs", "other")):
        create(dynamodb, name, Tags=[{"Key": TAG, "Value": suite}])
    workshop = Workshop(dynamodb, "s", FAST)
    workshop.expect(["ours", "not-made"])
    assert workshop.remove() == []
    assert names(dynamodb) == ["theirs"]


@pytest.mark.prove
def test_the_app_in_a_vpc_has_the_endpoints_that_synth_names() -> None:
    app = App(context={"aws:cdk:bundling-stacks": []})
    Enclosed(app, "Trial", "Orders")
    resources = app.synth().get_stack_by_name("Trial").template["Resources"].values()
    kinds = Counter(resource["Type"] for resource in resources)
    assert kinds["AWS::EC2::VPCEndpoint"] == len(ENDPOINTS["keys"])
    assert kinds["AWS::EC2::NatGateway"] == kinds["AWS::EC2::InternetGateway"] == 0
    functions = [r for r in resources if r["Type"] == "AWS::Lambda::Function"]
    assert functions
    assert all("VpcConfig" in function["Properties"] for function in functions)
    assert {*OUTER_SERVICES} == {*ENDPOINTS["keys"]} - {*GATEWAYS}


def test_the_second_machine_is_the_example_of_the_page_and_may_run_its_maps() -> None:
    app = App()
    Reader(app, "Trial", "results", "orders-7")
    resources = app.synth().get_stack_by_name("Trial").template["Resources"].values()
    (machine,) = (r for r in resources if r["Type"] == "AWS::StepFunctions::StateMachine")
    outer = json.loads(machine["Properties"]["DefinitionString"])["States"]["ForEachPart"]
    parts = {"Bucket": "results", "Key": "runs/orders-7/parts.json"}
    assert outer["ItemReader"]["Parameters"] == parts
    inner = outer["ItemProcessor"]["States"]["ForEachKey"]
    assert inner["ItemReader"]["ReaderConfig"] == {"InputType": "JSONL"}
    assert inner["ItemProcessor"] == RETURN_KEY
    (role,) = (r for r in resources if r["Type"] == "AWS::IAM::Role")
    (policy,) = role["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    actions = {statement["Action"]: str(statement["Resource"]) for statement in statements}
    assert ":s3:::results/runs/orders-7/*" in actions.pop("s3:GetObject")
    start, *follow = (actions[f"states:{verb}Execution"] for verb in ("Start", "Describe", "Stop"))
    assert ":stateMachine:Trial'" in start
    assert ":stateMachine:Trial/*'" in start
    assert all(":execution:Trial:*'" in resource for resource in follow)
    assert all(":execution:Trial/*'" in resource for resource in follow)


@pytest.mark.prove
def test_the_endpoints_are_deleted_after_the_functions_that_use_them() -> None:
    app = App(context={"aws:cdk:bundling-stacks": []})
    Enclosed(app, "Trial", "Orders", "us-east-1b")
    resources = app.synth().get_stack_by_name("Trial").template["Resources"]
    (guard,) = (r for r in resources.values() if r["Type"] == "Custom::KeeperMappings")
    kinds = {"AWS::EC2::VPCEndpoint", "AWS::EC2::SubnetRouteTableAssociation"}
    assert {name for name, r in resources.items() if r["Type"] in kinds} <= {*guard["DependsOn"]}
    (subnet,) = (r for r in resources.values() if r["Type"] == "AWS::EC2::Subnet")
    assert subnet["Properties"]["AvailabilityZone"] == "us-east-1b"


def test_the_cost_contains_everything_that_the_suite_creates() -> None:
    tables = fixtures("x-")
    service = expected(tables, None)
    runs = expected(tables, WORKER)
    with_own_stack = expected(tables, WORKER, OfOwnStack.of("x-", "key"))
    assert service.dollars < runs.dollars < with_own_stack.dollars < 1.0
    assert with_own_stack.checks["sharding-hot-key"] > 0.09
    assert with_own_stack.checks.keys() == CHECKS.keys()
    assert list(with_own_stack.checks) == list(CHECKS)
    assert f"in all, at most        ${with_own_stack.dollars:.2f}" in with_own_stack.text()
    assert f"without                {', '.join(UNKNOWN)}: no price" in with_own_stack.text()
    assert "without" not in runs.text()


def test_a_dry_run_lists_each_check_and_sends_no_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(
        "botocore.httpsession.URLLib3Session.send", lambda *_: pytest.fail("a request was sent")
    )
    assert run.main(["--dry-run"]) == run.PASSED
    output = capsys.readouterr().out
    listed = re.findall(r"^  ([a-z-]+) +(?:\$0\.\d{4}|unknown)  ", output, re.MULTILINE)
    assert listed == list(CHECKS)


def test_a_command_to_deploy_is_quoted() -> None:
    assert deploy_command(["a", "b"], "Keyhop") == "npx cdk deploy -c tables=a,b"
    assert deploy_command(["a b"], "Other").endswith("-c 'tables=a b' -c stackName=Other")


@dataclass
class Formation:
    """Stacks by name. A deletion is complete after one look, and retains each resource."""

    stacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    resources: list[tuple[str, str]] = field(default_factory=list)

    def create(self, suite: str, name: str = NAME, status: str = "CREATE_COMPLETE") -> None:
        tags = [{"Key": TAG, "Value": suite}] if status != REVIEWED else []
        stack = {"StackName": name, "StackId": name, "StackStatus": status, "Tags": tags}
        self.stacks[name] = {**stack, "CreationTime": datetime.now(UTC)}

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        if StackName not in self.stacks:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks")
        description = dict(self.stacks[StackName])
        following = {"CREATE_IN_PROGRESS": "CREATE_COMPLETE", "DELETE_IN_PROGRESS": "gone"}
        self.stacks[StackName]["StackStatus"] = following.get(
            description["StackStatus"], description["StackStatus"]
        )
        if self.stacks[StackName]["StackStatus"] == "gone":
            del self.stacks[StackName]
        return {"Stacks": [description]}

    def get_paginator(self, _: str) -> "Formation":
        return self

    def paginate(self, StackName: str) -> list[dict[str, Any]]:  # noqa: N803
        rows = [{"ResourceType": kind, "PhysicalResourceId": name} for kind, name in self.resources]
        return [{"StackResourceSummaries": rows}]

    def delete_stack(self, StackName: str) -> None:  # noqa: N803
        self.stacks[StackName]["StackStatus"] = "DELETE_IN_PROGRESS"


@pytest.fixture
def formation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Formation]:
    """CloudFormation, with a bucket and a table of the stack, and a bucket of somebody else."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3 = boto3.client("s3")
        for name in ("a-users", "the-stacks"):
            s3.create_bucket(Bucket=name)
            s3.put_object(Bucket=name, Key="runs/r/manifest.json", Body=b"{}")
        create(boto3.client("dynamodb"), "shards", DeletionProtectionEnabled=True)
        yield Formation(resources=[(stacks.BUCKET, "the-stacks"), (stacks.TABLE, "shards")])


def remaining_resources() -> tuple[list[str], list[str]]:
    buckets = [bucket["Name"] for bucket in boto3.client("s3").list_buckets()["Buckets"]]
    return buckets, boto3.client("dynamodb").list_tables()["TableNames"]


ALL = (["a-users", "the-stacks"], ["shards"])


def interrupted_stack(formation: Formation) -> OwnStack:
    """Return a stack whose deployment was interrupted, so its resources are unknown."""
    stack = OwnStack("mine", FAST, {}, formation)
    stack._began = 1.0
    return stack


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CREATE_IN_PROGRESS", REVIEWED])
def test_its_stack_is_removed_with_its_retained_resources(
    formation: Formation, status: str
) -> None:
    formation.create("mine", status=status)
    assert interrupted_stack(formation).remove() == []
    assert formation.stacks == {}
    assert remaining_resources() == (["a-users"], [])


def test_a_bucket_of_a_stack_that_is_gone_is_emptied_and_deleted(formation: Formation) -> None:
    """The bucket still contains runs after the suite has deleted the stack."""
    stack = interrupted_stack(formation)
    stack.adopt_resources(formation.resources)
    assert stack.remove() == []
    assert remaining_resources() == (["a-users"], [])


def test_leftovers_are_found_by_tag(formation: Formation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket and the protected table of a deleted stack are found too."""
    arns = ["arn:aws:s3:::the-stacks", "arn:aws:dynamodb:us-east-1:123456789012:table/shards"]
    monkeypatch.setattr(leftovers, "tagged", lambda suite: arns if suite == "mine" else [])
    monkeypatch.setattr(leftovers, "stop_following", lambda function: [])
    monkeypatch.setattr(leftovers, "OwnStack", partial(OwnStack, formation=formation))
    dynamodb = boto3.client("dynamodb")
    shards = dynamodb.describe_table(TableName="shards")["Table"]["TableArn"]
    dynamodb.tag_resource(ResourceArn=shards, Tags=[{"Key": TAG, "Value": "mine"}])
    remaining = leftovers.Leftovers("mine", FAST)
    assert "\n  table shards\n  bucket the-stacks, with" in remaining.announcement()
    assert remaining.remove() == []
    assert remaining_resources() == (["a-users"], [])
    with pytest.raises(Refused, match="Nothing in this account"):
        leftovers.Leftovers("theirs", FAST)


def test_a_stack_of_another_start_stays(formation: Formation) -> None:
    formation.create("theirs")
    (message,) = interrupted_stack(formation).remove()
    assert message == f"stack {NAME}: it was not made by this start of the suite"
    assert NAME in formation.stacks
    assert remaining_resources() == ALL


def test_a_stack_that_was_not_started_is_not_removed(formation: Formation) -> None:
    formation.create("mine")
    assert OwnStack("mine", FAST, {}, formation).remove() == []
    assert NAME in formation.stacks
    assert remaining_resources() == ALL


def test_a_stack_of_its_name_is_refused(formation: Formation) -> None:
    formation.create("theirs")
    with pytest.raises(Refused, match=f"There is a stack {NAME} already"):
        OwnStack("mine", FAST, {}, formation).refuse_existing()


def test_an_account_without_bootstrap_is_told_what_to_do(formation: Formation) -> None:
    with pytest.raises(Refused, match="npx cdk bootstrap"):
        OwnStack("mine", FAST, {}, formation).refuse_existing()
    formation.create("the CDK's", "CDKToolkit")
    OwnStack("mine", FAST, {}, formation).refuse_existing()
