"""Executions of the deployed state machine, their results, and the checks of both."""

import gzip
import hashlib
import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.values import from_json

from tests.live.deployed import Deployed
from tests.live.fixtures import COMMON, INDEX, Fixture, comparable
from tests.live.report import Differs, Report, expect, expect_equal, expect_keys, say, until
from tests.live.ways import Ways

RUN_SECONDS = 900.0
SEGMENTS = 200
GROUPS = 7
"""The groups of SEGMENTS segments, with up to 32 segments in each."""

MAX_POLLS = 30
"""The maximum number of polls of Step Functions, which is eventually consistent."""

SMALL_BUDGET = 30.0
"""Read units that are not enough for SEGMENTS segments, which cost 0.5 or more."""

STILL_WRITTEN_SECONDS = 120.0
"""The limit for the next object of a running function, which writes one in 15 to 60 seconds."""

STILL_SECONDS = 2.0
"""The minimum difference of times of S3 and Step Functions, whose clocks may differ by a second."""

SLOW_RATE = 8.0
"""The read units a second with which a run of SEGMENTS takes twelve seconds or more."""


class Runs:
    """The executions of one start of the suite. It removes only what they wrote."""

    def __init__(self, deployed: Deployed, suite: str, ways: Ways) -> None:
        self.dollars = 0.0
        self.bucket = deployed.bucket
        self.machine = deployed.arn
        self.ways = ways
        self._suite = suite
        self._arns: dict[str, str] = {}
        self._states = boto3.client("stepfunctions")
        self._s3 = boto3.client("s3")

    def start(self, label: str, values: dict[str, Any], machine: str | None = None) -> str:
        """Start an execution of EnumerateKeys or another machine; return its name and the run's."""
        name = f"{COMMON}{self._suite}-{label}"
        arn = machine or self.machine
        self._arns[name] = f"{arn.replace(':stateMachine:', ':execution:', 1)}:{name}"
        self._states.start_execution(stateMachineArn=arn, name=name, input=json.dumps(values))
        return name

    def note(self, arn: str) -> str:
        """Record an execution that something else has started; return its name."""
        name = arn.rpartition(":")[2]
        self._arns[name] = arn
        return name

    def outcome(self, name: str, seconds: float = RUN_SECONDS) -> dict[str, Any]:
        """Return the description of an ended execution; raise Differs if it takes too long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            description = self._describe(name)
            if description is not None and description["status"] != "RUNNING":
                return description
            time.sleep(self.ways.poll_seconds)
        raise Differs(f"execution {name} was not over after {seconds:g} seconds")

    def output(self, name: str, seconds: float = RUN_SECONDS) -> Any:
        """Return the output of an execution; raise Differs if it did not succeed."""
        end = self.outcome(name, seconds)
        error = f"{end.get('error')}: {end.get('cause')}"
        expect(end["status"] == "SUCCEEDED", f"execution {name} {end['status']}: {error}")
        output = json.loads(end["output"])
        self.dollars += output["cost"]["total"] if "manifest" in output else 0.0
        return output

    def stop(self, name: str) -> None:
        """Stop an execution. Its running functions continue."""
        self._states.stop_execution(executionArn=self._arn(name))

    def redrive(self, name: str) -> None:
        """Redrive a stopped execution as soon as all its parts have ended."""
        for poll in range(MAX_POLLS):
            try:
                self._states.redrive_execution(executionArn=self._arn(name))
                break
            except ClientError as error:
                if error_code(error) != "ExecutionNotRedrivable" or poll == MAX_POLLS - 1:
                    raise
                time.sleep(self.ways.poll_seconds)
        for _ in range(MAX_POLLS):
            if (self._describe(name) or {}).get("redriveCount"):
                return
            time.sleep(self.ways.poll_seconds)
        raise Differs(f"execution {name} was redriven, but does not say so")

    def manifest(self, run: str) -> dict[str, Any]:

        return dict(json.loads(self.read(f"runs/{run}/manifest.json")))

    def read(self, key: str) -> bytes:
        """Return an object of the results bucket."""
        body: bytes = self._s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return body

    def objects(self, run: str) -> list[str]:
        """Return the keys of all objects of a run."""
        return list(self.sizes(run))

    def sizes(self, run: str) -> dict[str, int]:
        """Return the size of each object of a run, in bytes."""
        return {entry["Key"]: entry["Size"] for entry in self._list(run)}

    def newest(self, run: str) -> datetime:
        """Return when a function last wrote to a run. Step Functions writes the map results."""
        entries = (entry for entry in self._list(run) if "/map-results/" not in entry["Key"])
        return max(entry["LastModified"] for entry in entries)

    def etag(self, key: str) -> str:
        """Return an object's ETag, which ends with a hyphen and the number of uploaded pieces."""
        return str(self._s3.head_object(Bucket=self.bucket, Key=key)["ETag"])

    def end(self) -> list[str]:
        """Stop running executions; return what could not be stopped, and why."""
        return self._each(self._end)

    def delete(self) -> list[str]:
        """Delete what the runs wrote; return what could not be deleted, and why."""
        return self._each(self._delete)

    def _list(self, run: str) -> list[dict[str, Any]]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"runs/{run}/"
        )
        return [entry for page in pages for entry in page.get("Contents", ())]

    def _each(self, remove: Callable[[str], None]) -> list[str]:
        failures = []
        for name in self._arns:
            try:
                remove(name)
            except (BotoCoreError, ClientError, Differs) as error:
                failures.append(f"run {name}, s3://{self.bucket}/runs/{name}/: {error}")
        return failures

    def _end(self, name: str) -> None:
        if (self._describe(name) or {}).get("status") == "RUNNING":
            self.stop(name)
            self.outcome(name)
            say(f"  stopped {name}")

    def _describe(self, name: str) -> dict[str, Any] | None:
        """Describe an execution; return None if Step Functions does not show it, or not yet."""
        try:
            return dict(self._states.describe_execution(executionArn=self._arn(name)))
        except self._states.exceptions.ExecutionDoesNotExist:
            return None

    def _delete(self, name: str) -> None:
        keys = self.objects(name)
        for start in range(0, len(keys), 1000):
            batch = [{"Key": key} for key in keys[start : start + 1000]]
            self._s3.delete_objects(Bucket=self.bucket, Delete={"Objects": batch, "Quiet": True})
        remaining = self.objects(name)
        expect(not remaining, f"{len(remaining)} objects are still there")

    def _arn(self, name: str) -> str:
        return self._arns[name]


def check_runs(tables: list[Fixture], runs: Runs, ways: Ways, report: Report) -> None:
    """Check each way to start an execution, on tables that the deployment may read."""
    for table in tables:
        index = INDEX if table.has_index else None
        report.check(
            "run",
            lambda table=table, index=index: whole_run(runs, table, index),
            f"{table.name}{f', index {index}' if index else ''}",
        )
    (many,) = (table for table in tables if table.shape == "many")
    checks: dict[str, Callable[[], str | None]] = {
        "run-stop": lambda: functions_go_on(runs, many, ways),
        "run-resume": lambda: continue_stopped(runs, many, ways, by_redrive=False),
        "run-redrive": lambda: continue_stopped(runs, many, ways, by_redrive=True),
        "run-groups": lambda: groups(runs, many),
        "run-plan": lambda: dry_run(runs, many),
        "run-refusal": lambda: unknown_field(runs, many),
        "run-allow-list": lambda: foreign_table(runs),
        "run-budget": lambda: resume_after_budget(runs, many),
    }
    for name, perform in checks.items():
        report.check(name, perform)


def whole_run(runs: Runs, table: Fixture, index: str | None) -> str:
    """Check one run from the input to the parts."""
    values = {"table": table.name, "segments": 16} | ({"index": index} if index else {})
    run = runs.start(table.label, values)
    return check_result(runs, run, runs.output(run), table, index)


def groups(runs: Runs, table: Fixture) -> str:
    """Check a run with several groups and the state VerifyRun."""
    values = {"table": table.name, "segments": SEGMENTS, "maxConcurrency": 4, "verifyShare": 0.2}
    run = runs.start("groups", values)
    output = runs.output(run)
    expect_equal(output["verify"]["missing"], 0, "keys missing by the check")
    expect_equal(runs.manifest(run)["groups"], GROUPS, "groups")
    return check_result(runs, run, output, table)


def dry_run(runs: Runs, table: Fixture) -> str:
    """Check that a dry run estimates half to double of the keys: a sample is rarely further off."""
    run = runs.start("plan", {"table": table.name, "dryRun": True})
    output = runs.output(run)
    estimated = output["keys"]["estimate"]
    keys = len(table.keys)
    expect(keys / 2 <= estimated <= keys * 2, f"{estimated} keys estimated, there are {keys}")
    expect_equal(len(runs.objects(run)), 1, "objects written")
    expect(
        json.loads(runs.read(runs.objects(run)[0]))["keys"] == output["keys"], "the file differs"
    )
    return f"{estimated} keys estimated, there are {keys}"


def unknown_field(runs: Runs, table: Fixture) -> str:
    """Check that an execution with an unknown field fails, and that its cause names the field."""
    return _refused(runs, "unknown-field", {"table": table.name, "segmetns": 4}, "segmetns")


def foreign_table(runs: Runs) -> str:
    """Check that a table that is not allow-listed is refused."""
    values = {"table": "keyhop-live-not-allowed"}
    return _refused(runs, "foreign-table", values, "not one of the tables of this deployment")


def _refused(runs: Runs, label: str, values: dict[str, Any], cause: str) -> str:
    run = runs.start(label, values)
    outcome = runs.outcome(run)
    expect_equal(outcome["status"], "FAILED", "status")
    expect_equal(outcome.get("error"), "InvalidInput", "error")
    expect(cause in outcome["cause"], f"the cause does not tell: {outcome['cause']}")
    expect_equal(runs.objects(run), [], "objects written")
    return f'"{outcome["cause"]}"'


def resume_after_budget(runs: Runs, table: Fixture) -> str:
    """Spend the budget of a run, and let another execution resume it."""
    values = {"table": table.name, "segments": SEGMENTS, "maxReadUnits": SMALL_BUDGET}
    run = runs.start("budget", values)
    outcome = runs.outcome(run)
    expect_equal(outcome["status"], "FAILED", "status of the run with too small a budget")
    expect_equal(outcome.get("error"), "BudgetSpent", "error")
    for word in ("resume", run):
        expect(word in outcome["cause"], f"the cause does not name {word}: {outcome['cause']}")
    progress = json.loads(runs.read(f"runs/{run}/progress.json"))
    expect(not progress["finished"], "the failed run says that it is finished")
    units = progress["read_units"]
    expect(units <= SMALL_BUDGET, f"{units} read units were spent of {SMALL_BUDGET}")
    output = runs.output(runs.start("resume", {"table": table.name, "resume": run}))
    expect_equal(output["run"], run, "the run that went on")
    return check_result(runs, run, output, table)


def continue_stopped(runs: Runs, table: Fixture, ways: Ways, by_redrive: bool) -> str:
    """Continue a stopped run, whose running functions then do the same work as the new ones."""
    run = _stop(runs, "redrive" if by_redrive else "resume", table, ways)
    if by_redrive:
        runs.redrive(run)
        output = runs.output(run)
    else:
        output = runs.output(runs.start("go-on", {"table": table.name, "resume": run}))
    return check_result(runs, run, output, table)


def functions_go_on(runs: Runs, table: Fixture, ways: Ways) -> str:
    """Stop an execution, and wait until one of its functions writes an object after that."""
    run = _stop(runs, "stop", table, ways)
    stop = runs.outcome(run)["stopDate"]

    def later_object() -> str | None:
        seconds = (runs.newest(run) - stop).total_seconds()
        return f"an object {seconds:.0f} s after the stop" if seconds > STILL_SECONDS else None

    return until(later_object, "an object", STILL_WRITTEN_SECONDS, ways.poll_seconds)


def _stop(runs: Runs, label: str, table: Fixture, ways: Ways) -> str:
    """Start an execution, stop it while its functions are running, and return the run."""
    values = {"table": table.name, "segments": SEGMENTS, "maxReadRate": SLOW_RATE}
    run = runs.start(f"stopped-{label}", values)
    deadline = time.monotonic() + RUN_SECONDS
    # The first object of the groups shows that PlanRun has ended and workers have started.
    while not any(f"runs/{run}/groups/" in key for key in runs.objects(run)):
        expect(time.monotonic() < deadline, "the run was not planned in time")
        time.sleep(ways.poll_seconds)
    time.sleep(1 + ways.poll_seconds)
    runs.stop(run)
    expect_equal(runs.outcome(run)["status"], "ABORTED", "status of the stopped execution")
    return run


def check_result(
    runs: Runs, run: str, output: dict[str, Any], table: Fixture, index: str | None = None
) -> str:
    """Check that output, manifest and parts of a run agree with each other and with the table."""
    name = "day" if index else "pk"
    expected = {comparable(item[name]) for item in table.items}
    manifest = runs.manifest(run)
    segments = manifest["segments"]
    expect_equal(output["manifest"], f"s3://{runs.bucket}/runs/{run}/manifest.json", "its place")
    expect_equal(manifest["finished"], True, "finished")
    expect_equal(manifest["keys"], len(expected), "keys by the manifest")
    expect_equal(output["keys"], len(expected), "keys by the output")
    expect_equal(segments["ended"], segments["total"], "segments ended")
    expect_equal(sum(segments["keys"]), len(expected), "keys by segment, in all")
    units, cost = manifest["read_units"], manifest["cost"]
    expect(units >= 0.5 * segments["total"], f"{units} read units: too few")
    expect(cost["total"] > cost["dynamodb"] > 0, f"cost: {cost}")
    expect_keys(keys_in_parts(runs, run, manifest, name), expected)
    prefix = f"runs/{run}/"
    named = {prefix + part["name"] for part in manifest["parts"]}
    listed = json.loads(runs.read(f"{prefix}parts.json"))
    expect_equal({item["key"] for item in listed}, named, "parts.json")
    links = runs.read(f"{prefix}links/parts.txt").decode().split()
    expect_equal(set(links), {f"s3://{runs.bucket}/{key}" for key in named}, "links/parts.txt")
    return (
        f"{len(expected)} keys, {units:g} read units, "
        f"{manifest['seconds']:.1f} s, ${cost['total']:.6f}"
    )


def keys_in_parts(
    runs: Runs, run: str, manifest: dict[str, Any], name: str
) -> list[tuple[str, Any]]:
    """Return the values of the attribute `name` in all lines of a run's parts."""
    keys = []
    for part in manifest["parts"]:
        content = runs.read(f"runs/{run}/{part['name']}")
        expect_equal(hashlib.sha256(content).hexdigest(), part["sha256"], part["name"])
        lines = gzip.decompress(content).decode().splitlines()
        expect_equal(len(lines), part["keys"], f"lines of {part['name']}")
        keys += [comparable(from_json(json.loads(line))[name]) for line in lines]
    return keys
