"""Around the runs: a large part, readers of keys, metrics, alarms, a VPC; destroy, deploy again."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import boto3
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.values import from_json
from keyhop.report.facts import TABLE, Absent
from keyhop.report.sources import control_plane
from keyhop.report.sources.absence import client_beside
from keyhop.report.sources.metrics import look
from keyhop.storage.s3 import PIECE_BYTES

from testing.databases import load
from tests.live.deployed import Deployed, find
from tests.live.fixtures import Fixture, OfOwnStack, comparable
from tests.live.hot_keys import ITEMS, KEY
from tests.live.key_index import TELLING_SECONDS, Life
from tests.live.report import Differs, Report, expect, expect_equal, expect_keys, until
from tests.live.runs import SEGMENTS, Runs, check_result, keys_in_parts, whole_run
from tests.live.stack import NAME, OwnStack

QUICK_KEYS = 40_000
"""They keep a worker busy for ten seconds."""

SPEED = 3_800.0
"""Requests a second of a worker, by docs/reference/costs.md."""

QUERY_SECONDS = 120.0
OUTER_SERVICES = ("states", "lambda")
"""The services that functions in a VPC reach by interface endpoints."""

SCHEDULE_SECONDS = 1_500.0
"""A schedule of ten minutes may begin with its deployment or ten minutes later."""


def check_around(
    reader: OwnStack, tables: OfOwnStack, runs: Runs, outputs: Mapping[str, str], report: Report
) -> None:
    """reader: the stack of reader_app.py. outputs: of the first one, which has logLevel ERROR."""
    large: list[str] = []
    report.check("run-large-part", lambda: large_part(runs, tables.wide, large))
    report.check("worker-speed", lambda: worker_speed(runs, tables.quick))
    report.check("athena", lambda: athena(runs, outputs, large, tables.wide))
    report.check("second-machine", lambda: second_machine(reader, tables.each, runs))
    began = datetime.now(UTC) - timedelta(hours=3)
    report.check("metrics-at-error", lambda: _until(lambda: metrics(began), "RunSeconds"))
    report.check("alarm-at-error", lambda: _until(alarm, "a state ALARM of FailedRun"))
    wide = tables.wide.name
    report.check("schedule", lambda: scheduled(tables.scheduled, runs, began))
    report.check("report-metrics", lambda: _until(lambda: seen(wide), "the table's own metrics"))


def large_part(runs: Runs, table: Fixture, made: list[str]) -> str:
    """All keys by one worker, in one slice: more than the piece from which a part is uploaded in
    several. made: gets the run's name."""
    run = runs.start("wide", {"table": table.name, "segments": 1})
    output = runs.output(run)
    made.append(run)
    largest = max(part["size"] for part in runs.manifest(run)["parts"])
    expect(largest > PIECE_BYTES, f"the largest part has {largest:,} bytes")
    key = max(runs.sizes(run).items(), key=lambda one: one[1])[0]
    told = runs.tag_of(key)
    expect("-" in told, f"{key} was not uploaded in pieces: its ETag is {told}")
    return f"{largest:,} bytes; {check_result(runs, run, output, table)}"


def worker_speed(runs: Runs, table: Fixture) -> str:
    """Load the table, let one worker hop from key to key, and return its requests a second."""
    items = ({"pk": {"S": f"k{n}"}, "sk": {"S": "a"}} for n in range(QUICK_KEYS))
    load(boto3.client("dynamodb"), items, table.name)
    time.sleep(runs.ways.settle_seconds)
    run = runs.start("quick", {"table": table.name, "segments": 32, "method": "skip"})
    expect_equal(runs.output(run)["keys"], QUICK_KEYS, "keys")
    manifest = runs.manifest(run)
    expect_equal(manifest["groups"], 1, "groups, each of which has a worker")
    speed = manifest["requests"] / manifest["worker_seconds"]
    told = f"{speed:,.0f} requests a second, {manifest['throttles']} throttled"
    expect(speed >= SPEED / 2, told)
    return told


def athena(runs: Runs, outputs: Mapping[str, str], made: list[str], wide: Fixture) -> str:
    """The query of docs/how-to/runs.md, counted; and of a run that there is not."""
    if not made:
        large_part(runs, wide, made)
    run, keys = made[0], len(wide.keys)
    table = f'"{outputs["GlueDatabase"]}"."{outputs["GlueTable"]}"'
    counted = f"count(*), count(distinct json_extract_scalar(line, '$.pk.S')) FROM {table}"
    found = _query(runs, f"SELECT {counted} WHERE run = '{run}'")
    expect_equal(found, [str(keys), str(keys)], "rows, and different keys")
    none = _query(runs, f"SELECT {counted} WHERE run = 'there-is-none'")
    expect_equal(none, ["0", "0"], "rows of a run that there is not")
    return f"{keys} rows"


def _query(runs: Runs, text: str) -> list[str]:
    client = boto3.client("athena")
    place = {"OutputLocation": f"s3://{runs.bucket}/athena/"}
    begun = client.start_query_execution(QueryString=text, ResultConfiguration=place)
    deadline = time.monotonic() + QUERY_SECONDS
    while True:
        told = client.get_query_execution(QueryExecutionId=begun["QueryExecutionId"])
        status = told["QueryExecution"]["Status"]
        if status["State"] not in ("QUEUED", "RUNNING"):
            break
        expect(time.monotonic() < deadline, f"the query is {status['State']}")
        time.sleep(runs.ways.poll_seconds)
    expect_equal(status["State"], "SUCCEEDED", f"the query: {status.get('StateChangeReason')}")
    rows = client.get_query_results(QueryExecutionId=begun["QueryExecutionId"])["ResultSet"]["Rows"]
    return [cell["VarCharValue"] for cell in rows[1]["Data"]]


def second_machine(stack: OwnStack, table: Fixture, runs: Runs) -> str:
    """Give the parts of a run to the machine of docs/how-to/runs.md; it returns the keys that the
    children of its maps got.
    """
    run = runs.start("second-keys", {"table": table.name, "segments": SEGMENTS})
    runs.output(run)
    parts = len(runs.manifest(run)["parts"])
    expect(parts > 1, "the run has one part only")
    outputs = stack.deploy(bucket=runs.bucket, run=run)
    time.sleep(runs.ways.settle_seconds)  # until the rights of its role are known everywhere
    found = runs.output(runs.start("second", {}, outputs["MachineArn"]))
    expect_equal(len(found), parts, "children of the map over the parts")
    expect_keys([comparable(from_json(key)["pk"]) for part in found for key in part], table.keys)
    expect_equal(stack.destroy(), [], "what is left of the stack")
    return f"{len(table.keys)} keys in {parts} parts"


def metrics(since: datetime) -> str | None:
    """Whether FinishRun's own metric of any table, which is a line of its log, has come."""
    client = boto3.client("cloudwatch")
    finished = 0.0
    for one in client.list_metrics(Namespace=NAME, MetricName="RunSeconds")["Metrics"]:
        told = client.get_metric_statistics(
            Namespace=NAME,
            MetricName="RunSeconds",
            Dimensions=one["Dimensions"],
            StartTime=since,
            EndTime=datetime.now(UTC) + timedelta(minutes=5),
            Period=3600,
            Statistics=["SampleCount"],
        )
        finished += sum(point["SampleCount"] for point in told["Datapoints"])
    return f"{finished:g} runs finished" if finished else None


def alarm() -> str | None:
    """Whether the run whose budget was spent before has raised the alarm."""
    told = boto3.client("cloudwatch").describe_alarm_history(
        AlarmName=f"{NAME}-FailedRun", HistoryItemType="StateUpdate"
    )
    states = [
        json.loads(item["HistoryData"])["newState"]["stateValue"]
        for item in told["AlarmHistoryItems"]
    ]
    return f"it was {states.count('ALARM')} times in ALARM" if "ALARM" in states else None


def seen(table: str) -> str | None:
    """Whether a key report finds the metrics of a table that was read a while ago."""
    facts, _, _ = control_plane.look(connect(Endpoint()), table)
    expect_equal(dict(facts.untold), {}, "what the control plane did not tell")
    found = look(client_beside("cloudwatch", Endpoint()), facts, time.time(), 3 * 3600).facts
    if isinstance(found, Absent) or not found.calls["Scan"]:
        return None
    units = found.consumed["read", TABLE]
    expect(units > 0, "Scans consumed nothing")
    return f"{found.calls['Scan']:g} Scans, {units:g} read units"


def scheduled(table: Fixture, runs: Runs, since: datetime) -> str:
    """A run that nobody started: its result is that of any run."""
    execution = until(lambda: _run_of(table, runs, since), "a scheduled run", SCHEDULE_SECONDS)
    output = runs.output(runs.note(execution))
    run = output["run"]
    expect_keys(keys_in_parts(runs, run, runs.manifest(run), "pk"), table.keys)
    return f"{output['keys']} keys by {run}"


def _run_of(table: Fixture, runs: Runs, since: datetime) -> str | None:
    """The ARN of an execution for the table; the suite itself starts none for it."""
    states = boto3.client("stepfunctions")
    told = states.list_executions(stateMachineArn=runs.machine, maxResults=100)["executions"]
    for one in told:
        if one["startDate"] >= since:
            given = states.describe_execution(executionArn=one["executionArn"])["input"]
            if f'"{table.name}"' in given:
                return str(one["executionArn"])
    return None


def _until(look: Callable[[], str | None], what: str) -> str:
    return until(look, what, TELLING_SECONDS)


def check_vpc(
    stack: OwnStack, table: Fixture, runs_of: Callable[[Deployed], Runs], report: Report
) -> None:
    """Deploy, list the keys of a table, and destroy: the deletion of functions in a VPC takes up
    to forty minutes. runs_of: makes the runs of a new deployment.
    """
    report.check("vpc-run", lambda: enclosed_run(stack, table, runs_of))


def enclosed_run(stack: OwnStack, table: Fixture, runs_of: Callable[[Deployed], Runs]) -> str:
    """All keys, by functions that reach the services through the VPC's endpoints only."""
    outputs = stack.deploy(zone=common_zone())
    told = whole_run(runs_of(find(outputs["StateMachineArn"], stack.name)), table, None)
    left = stack.destroy()
    expect_equal(left, [outputs["ResultsBucketName"]], "what is left of the stack")
    return told


def common_zone() -> str:
    """Return an availability zone in which all of OUTER_SERVICES have endpoints: not each has."""
    client = boto3.client("ec2")
    names = [f"com.amazonaws.{client.meta.region_name}.{service}" for service in OUTER_SERVICES]
    told = client.describe_vpc_endpoint_services(ServiceNames=names)["ServiceDetails"]
    zones = set.intersection(*(set(service["AvailabilityZones"]) for service in told))
    expect(zones, f"no zone has endpoints of all of {', '.join(names)}")
    return min(zones)


def check_destroy(
    stack: OwnStack,
    tables: OfOwnStack,
    plain: Fixture,
    runs: Runs,
    runs_of: Callable[[Deployed], Runs],
    life: Life,
    report: Report,
) -> None:
    """What deploy.md says of taking it away, and what the stack refuses before. runs_of: makes
    the runs of a new deployment. life: of a table that may have a key index.
    """
    report.check("update-refused", lambda: update_refused(stack, tables, life))
    report.check("destroy-refused", lambda: destroy_refused(stack, life))
    report.check("destroy", lambda: destroyed(stack, tables, runs))
    report.check("deploy-again", lambda: again(stack, tables, plain, runs, runs_of))


def update_refused(stack: OwnStack, tables: OfOwnStack, life: Life) -> str:
    """One that takes a table with a standing key index out of the list, and is rolled back."""
    life.build()
    others = [one for one in tables.context() if one["table"] != life.table.name]
    try:
        stack.deploy(tables=json.dumps(others))
    except Differs as refused:
        expect("The key index of" in str(refused), f"it was refused for another reason: {refused}")
    else:
        raise Differs("the table was let go")
    status = stack.status()
    time.sleep(life.ways.settle_seconds)  # until the rights that came back are known everywhere
    life.remove()
    expect_equal(status, "UPDATE_ROLLBACK_COMPLETE", "the stack's status")
    return status


def destroy_refused(stack: OwnStack, life: Life) -> str:
    """Nothing is lost: afterwards the index can be removed by the same stack."""
    life.build()
    try:
        stack.destroy()
    except Differs as refused:
        said = str(refused)
    else:
        raise Differs("the stack was destroyed")
    status = stack.status()
    deleted, why = stack.deleted_resources(), ""
    if status == "DELETE_FAILED":
        why = stack.why_no_update()
    life.remove()
    expect_equal(status, "DELETE_FAILED", f"the stack's status; cdk said: {said}")
    expect_equal(deleted, [], "what was deleted before that")
    expect(status in why, f"an update was refused for another reason: {why}")
    return f"{status}, and an update is refused"


def destroyed(stack: OwnStack, tables: OfOwnStack, runs: Runs) -> str:
    """What stays is the bucket, and the metadata table."""
    left = stack.destroy()
    metadata = [tables.shards.name] if runs.ways.stack_makes_tables else []
    expect_equal(set(left), {runs.bucket, *metadata}, "what is left")
    return f"left: {', '.join(left)}"


def again(
    stack: OwnStack,
    tables: OfOwnStack,
    plain: Fixture,
    runs: Runs,
    runs_of: Callable[[Deployed], Runs],
) -> str:
    """With the bucket and the metadata of before: its runs lie there, and the items are found."""
    outputs = stack.deploy("--import-existing-resources", resultsBucket=runs.bucket)
    deployed = find(outputs["StateMachineArn"], NAME)
    expect_equal(deployed.bucket, runs.bucket, "the bucket")
    event = {"table": tables.hot.name, "key": KEY, "limit": 1000}
    answer = boto3.client("lambda").invoke(
        FunctionName=outputs["QueryShardedName"], Payload=json.dumps(event).encode()
    )
    page = json.loads(answer["Payload"].read())
    expect_equal(page.get("count"), ITEMS, "items of a sharded key")
    return whole_run(runs_of(deployed), plain, None)
