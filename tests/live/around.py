"""Checks around the runs: large parts, readers of keys, metrics, alarms, a VPC, and destroy."""

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
from tests.live.key_index import METRICS_SECONDS, Life
from tests.live.report import Differs, Report, expect, expect_equal, expect_keys, until
from tests.live.runs import SEGMENTS, Runs, check_result, keys_in_parts, whole_run
from tests.live.stack import NAME, OwnStack

QUICK_KEYS = 40_000
"""The keys of a table that keeps a worker busy for ten seconds."""

SPEED = 3_800.0
"""The requests a second of a worker, from docs/reference/costs.md."""

QUERY_SECONDS = 120.0
OUTER_SERVICES = ("states", "lambda")
"""The services that functions in a VPC reach through interface endpoints."""

SCHEDULE_SECONDS = 1_500.0
"""A schedule of ten minutes may start with its deployment or ten minutes later."""


def check_around(
    reader: OwnStack, tables: OfOwnStack, runs: Runs, outputs: Mapping[str, str], report: Report
) -> None:
    """Check what reads and observes runs. `reader` is the stack of reader_app.py; `runs` and
    `outputs` are of a stack with logLevel ERROR.
    """
    large: list[str] = []
    report.check("run-large-part", lambda: large_part(runs, tables.wide, large))
    report.check("worker-speed", lambda: worker_speed(runs, tables.quick))
    report.check("athena", lambda: athena(runs, outputs, large, tables.wide))
    report.check("second-machine", lambda: second_machine(reader, tables.each, runs))
    began = datetime.now(UTC) - timedelta(hours=3)
    report.check("metrics-at-error", lambda: _until(lambda: run_metrics(began), "RunSeconds"))
    report.check("alarm-at-error", lambda: _until(alarm_states, "a state ALARM of FailedRun"))
    wide = tables.wide.name
    report.check("schedule", lambda: scheduled_run(tables.scheduled, runs, began))
    label = "the table's own metrics"
    report.check("report-metrics", lambda: _until(lambda: table_metrics(wide), label))


def large_part(runs: Runs, table: Fixture, run_names: list[str]) -> str:
    """Let one worker write a part that is uploaded in pieces; append the run to `run_names`."""
    run = runs.start("wide", {"table": table.name, "segments": 1})
    output = runs.output(run)
    run_names.append(run)
    largest = max(part["size"] for part in runs.manifest(run)["parts"])
    expect(largest > PIECE_BYTES, f"the largest part has {largest:,} bytes")
    sizes = runs.sizes(run)
    key = max(sizes, key=sizes.__getitem__)
    etag = runs.etag(key)
    expect("-" in etag, f"{key} was not uploaded in pieces: its ETag is {etag}")
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
    note = f"{speed:,.0f} requests a second, {manifest['throttles']} throttled"
    expect(speed >= SPEED / 2, note)
    return note


def athena(runs: Runs, outputs: Mapping[str, str], run_names: list[str], wide: Fixture) -> str:
    """Count the rows of the query in docs/how-to/runs.md, also for a run that does not exist."""
    if not run_names:
        large_part(runs, wide, run_names)
    run, keys = run_names[0], len(wide.keys)
    table = f'"{outputs["GlueDatabase"]}"."{outputs["GlueTable"]}"'
    query = f"SELECT count(*), count(distinct json_extract_scalar(line, '$.pk.S')) FROM {table}"
    counts = _query(runs, f"{query} WHERE run = '{run}'")
    expect_equal(counts, [str(keys), str(keys)], "rows, and different keys")
    counts = _query(runs, f"{query} WHERE run = 'there-is-none'")
    expect_equal(counts, ["0", "0"], "rows of a run that there is not")
    return f"{keys} rows"


def _query(runs: Runs, text: str) -> list[str]:
    client = boto3.client("athena")
    place = {"OutputLocation": f"s3://{runs.bucket}/athena/"}
    started = client.start_query_execution(QueryString=text, ResultConfiguration=place)
    query = {"QueryExecutionId": started["QueryExecutionId"]}
    deadline = time.monotonic() + QUERY_SECONDS
    while True:
        status = client.get_query_execution(**query)["QueryExecution"]["Status"]
        if status["State"] not in ("QUEUED", "RUNNING"):
            break
        expect(time.monotonic() < deadline, f"the query is {status['State']}")
        time.sleep(runs.ways.poll_seconds)
    expect_equal(status["State"], "SUCCEEDED", f"the query: {status.get('StateChangeReason')}")
    rows = client.get_query_results(**query)["ResultSet"]["Rows"]
    return [cell["VarCharValue"] for cell in rows[1]["Data"]]


def second_machine(stack: OwnStack, table: Fixture, runs: Runs) -> str:
    """Check that the state machine in docs/how-to/runs.md gets all keys from the parts of a run."""
    run = runs.start("second-keys", {"table": table.name, "segments": SEGMENTS})
    runs.output(run)
    parts = len(runs.manifest(run)["parts"])
    expect(parts > 1, "the run has one part only")
    outputs = stack.deploy(bucket=runs.bucket, run=run)
    time.sleep(runs.ways.settle_seconds)  # until the permissions of its role take effect
    output = runs.output(runs.start("second", {}, outputs["MachineArn"]))
    expect_equal(len(output), parts, "children of the map over the parts")
    expect_keys([comparable(from_json(key)["pk"]) for part in output for key in part], table.keys)
    expect_equal(stack.destroy(), [], "what is left of the stack")
    return f"{len(table.keys)} keys in {parts} parts"


def run_metrics(since: datetime) -> str | None:
    """Return the number of runs in the metric that FinishRun logs; None before it arrives."""
    client = boto3.client("cloudwatch")
    finished = 0.0
    for metric in client.list_metrics(Namespace=NAME, MetricName="RunSeconds")["Metrics"]:
        statistics = client.get_metric_statistics(
            Namespace=NAME,
            MetricName="RunSeconds",
            Dimensions=metric["Dimensions"],
            StartTime=since,
            EndTime=datetime.now(UTC) + timedelta(minutes=5),
            Period=3600,
            Statistics=["SampleCount"],
        )
        finished += sum(point["SampleCount"] for point in statistics["Datapoints"])
    return f"{finished:g} runs finished" if finished else None


def alarm_states() -> str | None:
    """Return how often the alarm was raised, as by the run without budget; None if never."""
    history = boto3.client("cloudwatch").describe_alarm_history(
        AlarmName=f"{NAME}-FailedRun", HistoryItemType="StateUpdate"
    )
    states = [
        json.loads(item["HistoryData"])["newState"]["stateValue"]
        for item in history["AlarmHistoryItems"]
    ]
    return f"it was {states.count('ALARM')} times in ALARM" if "ALARM" in states else None


def table_metrics(table: str) -> str | None:
    """Return a table's reads as a key report finds them in the metrics; None before they arrive."""
    facts, _, _ = control_plane.look(connect(Endpoint()), table)
    expect_equal(dict(facts.untold), {}, "what the control plane did not tell")
    metrics = look(client_beside("cloudwatch", Endpoint()), facts, time.time(), 3 * 3600).facts
    if isinstance(metrics, Absent) or not metrics.calls["Scan"]:
        return None
    units = metrics.consumed["read", TABLE]
    expect(units > 0, "Scans consumed nothing")
    return f"{metrics.calls['Scan']:g} Scans, {units:g} read units"


def scheduled_run(table: Fixture, runs: Runs, since: datetime) -> str:
    """Wait for a run that the schedule started, and check its result."""
    execution = until(lambda: _run_of(table, runs, since), "a scheduled run", SCHEDULE_SECONDS)
    output = runs.output(runs.note(execution))
    run = output["run"]
    expect_keys(keys_in_parts(runs, run, runs.manifest(run), "pk"), table.keys)
    return f"{output['keys']} keys by {run}"


def _run_of(table: Fixture, runs: Runs, since: datetime) -> str | None:
    """Return the ARN of an execution for the table. The suite does not start one itself."""
    states = boto3.client("stepfunctions")
    executions = states.list_executions(stateMachineArn=runs.machine, maxResults=100)["executions"]
    for execution in executions:
        if execution["startDate"] >= since:
            arn = str(execution["executionArn"])
            if f'"{table.name}"' in states.describe_execution(executionArn=arn)["input"]:
                return arn
    return None


def _until(poll: Callable[[], str | None], label: str) -> str:
    return until(poll, label, METRICS_SECONDS)


def check_vpc(
    stack: OwnStack, table: Fixture, runs_of: Callable[[Deployed], Runs], report: Report
) -> None:
    """Check a stack in a VPC. `runs_of` returns the runs of a new deployment."""
    report.check("vpc-run", lambda: run_in_vpc(stack, table, runs_of))


def run_in_vpc(stack: OwnStack, table: Fixture, runs_of: Callable[[Deployed], Runs]) -> str:
    """List a table's keys by functions that reach the services through the VPC's endpoints only."""
    outputs = stack.deploy(zone=common_zone())
    note = whole_run(runs_of(find(outputs["StateMachineArn"], stack.name)), table, None)
    expect_equal(stack.destroy(), [outputs["ResultsBucketName"]], "what is left of the stack")
    return note


def common_zone() -> str:
    """Return an availability zone that has endpoints of all of OUTER_SERVICES."""
    client = boto3.client("ec2")
    names = [f"com.amazonaws.{client.meta.region_name}.{service}" for service in OUTER_SERVICES]
    details = client.describe_vpc_endpoint_services(ServiceNames=names)["ServiceDetails"]
    zones = set.intersection(*(set(service["AvailabilityZones"]) for service in details))
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
    """Check what deploy.md says about the removal of a deployment, and what the stack refuses.

    `runs_of` returns the runs of a new deployment. `life` is of a table that may have a key index.
    """
    report.check("update-refused", lambda: update_refused(stack, tables, life))
    report.check("destroy-refused", lambda: destroy_refused(stack, life))
    report.check("destroy", lambda: destroy(stack, tables, runs))
    report.check("deploy-again", lambda: deploy_again(stack, tables, plain, runs, runs_of))


def update_refused(stack: OwnStack, tables: OfOwnStack, life: Life) -> str:
    """Check that an update without a table that has a key index is rolled back."""
    life.build()
    entries = [entry for entry in tables.context() if entry["table"] != life.table.name]
    try:
        stack.deploy(tables=json.dumps(entries))
    except Differs as error:
        expect("The key index of" in str(error), f"it was refused for another reason: {error}")
    else:
        raise Differs("the table was let go")
    status = stack.status()
    time.sleep(life.ways.settle_seconds)  # until the restored permissions take effect
    life.remove()
    expect_equal(status, "UPDATE_ROLLBACK_COMPLETE", "the stack's status")
    return status


def destroy_refused(stack: OwnStack, life: Life) -> str:
    """Check that nothing is lost: afterwards the same stack can remove the index."""
    life.build()
    try:
        stack.destroy()
    except Differs as error:
        message = str(error)
    else:
        raise Differs("the stack was destroyed")
    status = stack.status()
    deleted, reason = stack.deleted_resources(), ""
    if status == "DELETE_FAILED":
        reason = stack.why_no_update()
    life.remove()
    expect_equal(status, "DELETE_FAILED", f"the stack's status; cdk said: {message}")
    expect_equal(deleted, [], "what was deleted before that")
    expect(status in reason, f"an update was refused for another reason: {reason}")
    return f"{status}, and an update is refused"


def destroy(stack: OwnStack, tables: OfOwnStack, runs: Runs) -> str:
    """Check that the bucket and the metadata table remain, and nothing else."""
    remaining = stack.destroy()
    metadata = [tables.shards.name] if runs.ways.stack_makes_tables else []
    expect_equal(set(remaining), {runs.bucket, *metadata}, "what is left")
    return f"left: {', '.join(remaining)}"


def deploy_again(
    stack: OwnStack,
    tables: OfOwnStack,
    plain: Fixture,
    runs: Runs,
    runs_of: Callable[[Deployed], Runs],
) -> str:
    """Deploy with the bucket and the metadata of before, and read the items of a sharded key."""
    outputs = stack.deploy("--import-existing-resources", resultsBucket=runs.bucket)
    deployed = find(outputs["StateMachineArn"], NAME)
    expect_equal(deployed.bucket, runs.bucket, "the bucket")
    event = {"table": tables.hot.name, "key": KEY, "limit": 1000}
    response = boto3.client("lambda").invoke(
        FunctionName=outputs["QueryShardedName"], Payload=json.dumps(event).encode()
    )
    page = json.loads(response["Payload"].read())
    expect_equal(page.get("count"), ITEMS, "items of a sharded key")
    return whole_run(runs_of(deployed), plain, None)
