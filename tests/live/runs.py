"""Executions of the deployed state machine, and what they wrote."""

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
"""SEGMENTS in groups of 32."""

MOST_LOOKS = 30
"""At something that Step Functions tells a little later."""

SMALL_BUDGET = 30.0
"""Read units that do not suffice for SEGMENTS segments, which cost 0.5 at least."""

STILL_WRITTEN_SECONDS = 120.0
"""For the next object of a function that was not stopped: it writes one in 15 to 60 seconds."""

STILL_SECONDS = 2.0
"""The times that S3 and Step Functions give are compared; they may differ by a second."""

SLOW_RATE = 8.0
"""Read units a second by which such a run takes at least twelve seconds."""


class Runs:
    """The executions of one start of the suite; removes what they wrote, and nothing else."""

    def __init__(self, deployed: Deployed, suite: str, ways: Ways) -> None:
        self.dollars = 0.0
        self.bucket = deployed.bucket
        self.machine = deployed.arn
        self.ways = ways
        self._suite = suite
        self._arns: dict[str, str] = {}
        self._states = boto3.client("stepfunctions")
        self._s3 = boto3.client("s3")

    def start(self, what: str, given: dict[str, Any], machine: str | None = None) -> str:
        """Begin an execution of EnumerateKeys, or of another machine by its ARN; returns its name,
        which a run has too."""
        name = f"{COMMON}{self._suite}-{what}"
        arn = machine or self.machine
        self._arns[name] = f"{arn.replace(':stateMachine:', ':execution:', 1)}:{name}"
        self._states.start_execution(stateMachineArn=arn, name=name, input=json.dumps(given))
        return name

    def note(self, arn: str) -> str:
        """Remember an execution that somebody else has started; returns its name."""
        name = arn.rpartition(":")[2]
        self._arns[name] = arn
        return name

    def outcome(self, name: str, seconds: float = RUN_SECONDS) -> dict[str, Any]:
        """How an execution ended, once it has; raises Differs if it takes too long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            told = self._describe(name)
            if told is not None and told["status"] != "RUNNING":
                return told
            time.sleep(self.ways.poll_seconds)
        raise Differs(f"execution {name} was not over after {seconds:g} seconds")

    def output(self, name: str, seconds: float = RUN_SECONDS) -> Any:
        """The output of an execution that succeeded; raises Differs if it did not."""
        told = self.outcome(name, seconds)
        why = f"{told.get('error')}: {told.get('cause')}"
        expect(told["status"] == "SUCCEEDED", f"execution {name} {told['status']}: {why}")
        output = json.loads(told["output"])
        self.dollars += output["cost"]["total"] if "manifest" in output else 0.0
        return output

    def stop(self, name: str) -> None:
        """Stop an execution; what its functions do at this moment, they go on doing."""
        self._states.stop_execution(executionArn=self._arn(name))

    def redrive(self, name: str) -> None:
        """Let it go on where it was stopped, as soon as all of it has ended."""
        for look in range(MOST_LOOKS):
            try:
                self._states.redrive_execution(executionArn=self._arn(name))
                break
            except ClientError as error:
                if error_code(error) != "ExecutionNotRedrivable" or look == MOST_LOOKS - 1:
                    raise
                time.sleep(self.ways.poll_seconds)
        for _ in range(MOST_LOOKS):
            told = self._describe(name)
            if told is not None and told.get("redriveCount"):
                return
            time.sleep(self.ways.poll_seconds)
        raise Differs(f"execution {name} was redriven, but does not say so")

    def manifest(self, run: str) -> dict[str, Any]:
        """A run's manifest."""
        return dict(json.loads(self.read(f"runs/{run}/manifest.json")))

    def read(self, key: str) -> bytes:
        """An object of the results bucket."""
        body: bytes = self._s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return body

    def objects(self, run: str) -> list[str]:
        """The keys of all objects of a run."""
        return list(self.sizes(run))

    def sizes(self, run: str) -> dict[str, int]:
        """The objects of a run, with their bytes."""
        return {one["Key"]: one["Size"] for one in self._list(run)}

    def newest(self, run: str) -> datetime:
        """Return when a function last wrote an object of a run: map-results are Step Functions'."""
        mine = (one for one in self._list(run) if "/map-results/" not in one["Key"])
        return max(one["LastModified"] for one in mine)

    def tag_of(self, key: str) -> str:
        """An object's ETag: with a hyphen and a number if it was uploaded in so many pieces."""
        return str(self._s3.head_object(Bucket=self.bucket, Key=key)["ETag"])

    def end(self) -> list[str]:
        """Stop what runs; returns what could not be stopped, and why."""
        return self._each(self._end)

    def delete(self) -> list[str]:
        """Delete what was written; returns what could not be deleted, and why."""
        return self._each(self._delete)

    def _list(self, run: str) -> list[dict[str, Any]]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"runs/{run}/"
        )
        return [one for page in pages for one in page.get("Contents", ())]

    def _each(self, remove: Callable[[str], None]) -> list[str]:
        left = []
        for name in self._arns:
            try:
                remove(name)
            except (BotoCoreError, ClientError, Differs) as error:
                left.append(f"run {name}, s3://{self.bucket}/runs/{name}/: {error}")
        return left

    def _end(self, name: str) -> None:
        told = self._describe(name)
        if told is not None and told["status"] == "RUNNING":
            self.stop(name)
            self.outcome(name)
            say(f"  stopped {name}")

    def _describe(self, name: str) -> dict[str, Any] | None:
        """None if there is no such execution: yet, since this is eventually consistent."""
        try:
            return dict(self._states.describe_execution(executionArn=self._arn(name)))
        except self._states.exceptions.ExecutionDoesNotExist:
            return None

    def _delete(self, name: str) -> None:
        keys = self.objects(name)
        for at in range(0, len(keys), 1000):
            batch = [{"Key": key} for key in keys[at : at + 1000]]
            self._s3.delete_objects(Bucket=self.bucket, Delete={"Objects": batch, "Quiet": True})
        left = self.objects(name)
        expect(not left, f"{len(left)} objects are still there")

    def _arn(self, name: str) -> str:
        return self._arns[name]


def check_runs(tables: list[Fixture], runs: Runs, ways: Ways, report: Report) -> None:
    """Each way to start an execution. tables: those that the deployment may read."""
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
        "run-resume": lambda: stopped(runs, many, ways, by_redrive=False),
        "run-redrive": lambda: stopped(runs, many, ways, by_redrive=True),
        "run-groups": lambda: groups(runs, many),
        "run-plan": lambda: dry_run(runs, many),
        "run-refusal": lambda: unknown_field(runs, many),
        "run-allow-list": lambda: foreign_table(runs),
        "run-budget": lambda: resumed(runs, many),
    }
    for name, look in checks.items():
        report.check(name, look)


def whole_run(runs: Runs, table: Fixture, index: str | None) -> str:
    """One run from the input to the parts."""
    given = {"table": table.name, "segments": 16} | ({"index": index} if index else {})
    run = runs.start(table.label, given)
    return check_result(runs, run, runs.output(run), table, index)


def groups(runs: Runs, table: Fixture) -> str:
    """Several groups; the state VerifyRun."""
    given = {"table": table.name, "segments": SEGMENTS, "maxConcurrency": 4, "verifyShare": 0.2}
    run = runs.start("groups", given)
    output = runs.output(run)
    expect_equal(output["verify"]["missing"], 0, "keys missing by the check")
    expect_equal(runs.manifest(run)["groups"], GROUPS, "groups")
    return check_result(runs, run, output, table)


def dry_run(runs: Runs, table: Fixture) -> str:
    """A sample is seldom far off; half to double of what is there is taken as an estimate."""
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
    """A wrong input ends as FAILED, and a person understands why."""
    return _refused(runs, "unknown-field", {"table": table.name, "segmetns": 4}, "segmetns")


def foreign_table(runs: Runs) -> str:
    """The allow-list holds."""
    given = {"table": "keyhop-live-not-allowed"}
    return _refused(runs, "foreign-table", given, "not one of the tables of this deployment")


def _refused(runs: Runs, what: str, given: dict[str, Any], told: str) -> str:
    run = runs.start(what, given)
    outcome = runs.outcome(run)
    expect_equal(outcome["status"], "FAILED", "status")
    expect_equal(outcome.get("error"), "InvalidInput", "error")
    expect(told in outcome["cause"], f"the cause does not tell: {outcome['cause']}")
    expect_equal(runs.objects(run), [], "objects written")
    return f'"{outcome["cause"]}"'


def resumed(runs: Runs, table: Fixture) -> str:
    """A run that may read too little, and another execution that goes on with it."""
    given = {"table": table.name, "segments": SEGMENTS, "maxReadUnits": SMALL_BUDGET}
    run = runs.start("budget", given)
    outcome = runs.outcome(run)
    expect_equal(outcome["status"], "FAILED", "status of the run with too small a budget")
    expect_equal(outcome.get("error"), "BudgetSpent", "error")
    for word in ("resume", run):
        expect(word in outcome["cause"], f"the cause does not name {word}: {outcome['cause']}")
    before = json.loads(runs.read(f"runs/{run}/progress.json"))
    expect(not before["finished"], "the failed run says that it is finished")
    expect(
        before["read_units"] <= SMALL_BUDGET,
        f"{before['read_units']} read units were spent of {SMALL_BUDGET}",
    )
    output = runs.output(runs.start("resume", {"table": table.name, "resume": run}))
    expect_equal(output["run"], run, "the run that went on")
    return check_result(runs, run, output, table)


def stopped(runs: Runs, table: Fixture, ways: Ways, by_redrive: bool) -> str:
    """The functions that were at work when it was stopped are twins of those that go on."""
    run = _stopped(runs, "redrive" if by_redrive else "resume", table, ways)
    if by_redrive:
        runs.redrive(run)
        output = runs.output(run)
    else:
        output = runs.output(runs.start("go-on", {"table": table.name, "resume": run}))
    return check_result(runs, run, output, table)


def functions_go_on(runs: Runs, table: Fixture, ways: Ways) -> str:
    """Stop an execution, and wait until one of its functions writes an object after that."""
    run = _stopped(runs, "stop", table, ways)
    stop = runs.outcome(run)["stopDate"]

    def written() -> str | None:
        seconds = (runs.newest(run) - stop).total_seconds()
        return f"an object {seconds:.0f} s after the stop" if seconds > STILL_SECONDS else None

    return until(written, "an object", STILL_WRITTEN_SECONDS, ways.poll_seconds)


def _stopped(runs: Runs, why: str, table: Fixture, ways: Ways) -> str:
    """Start an execution, and stop it while its functions are at work; returns the run."""
    given = {"table": table.name, "segments": SEGMENTS, "maxReadRate": SLOW_RATE}
    run = runs.start(f"stopped-{why}", given)
    deadline = time.monotonic() + RUN_SECONDS
    # From here on PlanRun is over, and the groups are being worked.
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
    """Output, manifest and parts of a finished run agree with each other and with the table."""
    name = "day" if index else "pk"
    wanted = {comparable(item[name]) for item in table.items}
    manifest = runs.manifest(run)
    segments = manifest["segments"]
    expect_equal(output["manifest"], f"s3://{runs.bucket}/runs/{run}/manifest.json", "its place")
    expect_equal(manifest["finished"], True, "finished")
    expect_equal(manifest["keys"], len(wanted), "keys by the manifest")
    expect_equal(output["keys"], len(wanted), "keys by the output")
    expect_equal(segments["ended"], segments["total"], "segments ended")
    expect_equal(sum(segments["keys"]), len(wanted), "keys by segment, in all")
    least = 0.5 * segments["total"]
    expect(manifest["read_units"] >= least, f"{manifest['read_units']} read units: too few")
    expect(
        manifest["cost"]["total"] > manifest["cost"]["dynamodb"] > 0, f"cost: {manifest['cost']}"
    )
    expect_keys(keys_in_parts(runs, run, manifest, name), wanted)
    prefix = f"runs/{run}/"
    named = {prefix + part["name"] for part in manifest["parts"]}
    listed = json.loads(runs.read(f"{prefix}parts.json"))
    expect_equal({item["key"] for item in listed}, named, "parts.json")
    links = runs.read(f"{prefix}links/parts.txt").decode().split()
    expect_equal(set(links), {f"s3://{runs.bucket}/{key}" for key in named}, "links/parts.txt")
    return (
        f"{len(wanted)} keys, {manifest['read_units']:g} read units, "
        f"{manifest['seconds']:.1f} s, ${manifest['cost']['total']:.6f}"
    )


def keys_in_parts(
    runs: Runs, run: str, manifest: dict[str, Any], name: str
) -> list[tuple[str, Any]]:
    """Return the values of the attribute `name` in all lines of a run's parts."""
    found = []
    for part in manifest["parts"]:
        content = runs.read(f"runs/{run}/{part['name']}")
        expect_equal(hashlib.sha256(content).hexdigest(), part["sha256"], part["name"])
        lines = gzip.decompress(content).decode().splitlines()
        expect_equal(len(lines), part["keys"], f"lines of {part['name']}")
        found += [comparable(from_json(json.loads(line))[name]) for line in lines]
    return found
