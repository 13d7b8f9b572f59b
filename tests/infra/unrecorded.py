"""Calls of a deployment that the end-to-end tests on a laptop cloud cannot record.

`service_calls` has the calls that AWS services make with Keyhop's roles, with the page of AWS's
documentation. `unrecorded_calls` has the calls of Keyhop's code that need more than a laptop cloud.
tests/recording/calls.py adds the calls that a recorded request implies: If-Match, a missing object,
a transaction.
"""

from collections.abc import Iterator

from keyhop.rekey.pair import SIDE_SUFFIX

from testing.iam.simulator import Call
from tests.infra.recorded import KEYS_QUEUE, PER_BATCH, REKEY
from tests.infra.template import (
    ACCOUNT,
    BUCKET_ARN,
    FUNCTIONS,
    KEY_INDEX_FUNCTIONS,
    KEY_INDEX_MACHINES,
    QUEUE_ARN,
    REGION,
    REKEY_FUNCTIONS,
    REPORT_FUNCTIONS,
    SHARDING_FUNCTIONS,
    function_arn,
    log_group_arn,
    states_arn,
    table_arn,
)

ALL_FUNCTIONS = (
    *(*FUNCTIONS, *KEY_INDEX_FUNCTIONS, *SHARDING_FUNCTIONS, "EachKey"),
    *(*REPORT_FUNCTIONS, *REKEY_FUNCTIONS),
)
JOBS = (
    *("EnumerateKeys", "WalkKeyIndexes", "ForEachKey", "SampleKeys"),
    *("RekeyBackfill", "RekeyVerify"),
)
RUNS, WALKS, EACHES, SAMPLES, BACKFILLS, VERIFIES = (f"Keyhop-{name}" for name in JOBS)
METADATA = "Keyhop-shards-Sharded"
MACHINES = (*JOBS, *KEY_INDEX_MACHINES, "DrainShards", "ReportKeys", "RekeyCutOver")
STREAM = f"{table_arn('Kept')}/stream/2026-11-21T09:00:00.000"
PAIR = [*REKEY[0].values()]
SIDE = f"{PAIR[1]}{SIDE_SUFFIX}"
RESULTS = f"{BUCKET_ARN}/runs/r1/map-results/8a1e/SUCCEEDED_0.json"
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"


def service_calls() -> Iterator[tuple[Call, str]]:
    """Yield each call of a service, with the page that documents it."""
    for name in ALL_FUNCTIONS:
        log = f"{log_group_arn(f'/aws/lambda/Keyhop-{name}')}:log-stream:s"
        for action in ("CreateLogStream", "PutLogEvents"):
            page = "Lambda: Sending function logs to CloudWatch Logs, required IAM permissions"
            yield Call.of(name, f"logs:{action}", log), page
        for action in ("PutTraceSegments", "PutTelemetryRecords"):
            page = "Lambda: Visualize function invocations using X-Ray, execution role permissions"
            yield Call.of(name, f"xray:{action}", "*"), page
    streams = {
        "KeepIndex": [STREAM],
        "Replicate": [STREAM.replace("/Kept/", f"/{name}/") for name in PAIR],
    }
    for name, stream_arns in streams.items():
        page = "Lambda: Process DynamoDB records, create an execution role"
        for action in ("DescribeStream", "GetRecords", "GetShardIterator"):
            for stream in stream_arns:
                yield Call.of(name, f"dynamodb:{action}", stream), page
        yield Call.of(name, "dynamodb:ListStreams", "*"), page
        page = "Lambda: Retain discarded records, permissions of destinations"
        yield Call.of(name, "sqs:SendMessage", QUEUE_ARN), page
    for name in MACHINES:
        yield from _machine_calls(name)
    for name in JOBS:
        yield from _map_calls(name)
    machines = [*((name, WALKS) for name in KEY_INDEX_MACHINES), ("ReportKeys", SAMPLES)]
    for name, nested_machine in machines:
        page = "Step Functions: IAM policies for calling other executions (.sync)"
        walk = states_arn(f"execution:{nested_machine}:e1")
        for action in ("DescribeExecution", "StopExecution"):
            yield Call.of(name, f"states:{action}", walk), page
        for action in ("PutTargets", "PutRule", "DescribeRule"):
            yield Call.of(name, f"events:{action}", RULE), page


def unrecorded_calls() -> Iterator[tuple[Call, str]]:
    """Yield each call of Keyhop's code that is not recorded, with the reason."""
    registry = f"{BUCKET_ARN}/key-index/Kept-0/entry.json"
    missing = registry.removeprefix(f"{BUCKET_ARN}/")
    uploading = ("ScanSegments", "WalkSegments", "EachKey", "SampleTable", "FinishRun")
    for name in (*uploading, "BackfillItems", "CompareBoth"):
        part = f"{BUCKET_ARN}/runs/r1/parts/g0-s0-0.jsonl.gz"
        why = "boto3 aborts a failed multipart upload of a part above 8 MB"
        yield Call.of(name, "s3:AbortMultipartUpload", part), why
    why = "a redrive, which ministack does not have, deletes the failures (test_crashes)"
    yield Call.of("CleanUp", "s3:DeleteObject", f"{BUCKET_ARN}/runs/r1/failures/g0.json"), why
    for machine in (RUNS, WALKS, EACHES, SAMPLES, BACKFILLS, VERIFIES):
        yield (
            Call.of("CleanUp", "states:SendTaskSuccess", states_arn(f"stateMachine:{machine}")),
            why,
        )
    why = "keys are sent in messages and in inputs of executions (test_each_deliver)"
    yield Call.of("EachKey", "sqs:SendMessage", KEYS_QUEUE), why
    yield Call.of("EachKey", "states:StartExecution", PER_BATCH), why
    table = table_arn("Each")
    why = "the item is read if a refusal does not return it (test_each_protocol)"
    yield Call.of("EachKey", "dynamodb:GetItem", table, dynamodb__Attributes=["pk", "sk"]), why
    context = {"dynamodb__Select": "SPECIFIC_ATTRIBUTES", "dynamodb__Attributes": ["pk"]}
    why = "PlanRun lists a small table itself"
    yield Call.of("EachKey", "dynamodb:Scan", table, **context), why
    why = "it has the same definition as EnumerateKeys, and fails in the same way"
    failure = f"{BUCKET_ARN}/runs/r1/failures/g0.json"
    context = {"cloudwatch__namespace": "Keyhop"}
    for name in ("ForEachKey", "SampleKeys", "RekeyBackfill", "RekeyVerify"):
        yield Call.of(name, "s3:PutObject", failure), why
        yield Call.of(name, "cloudwatch:PutMetricData", "*", **context), why
    for name in ("FinishRun", "KeepIndex", "WalkSegments", "ReleaseKeeper"):
        why = "a missing entry, for example in an emptied bucket, means an unknown state"
        yield Call.of(name, "s3:ListBucket", BUCKET_ARN, s3__prefix=missing), why
    for name in ("VerifyKeyIndex", "RemoveKeyIndex", "DrainShards", "ReportKeys", "RekeyCutOver"):
        why = "end to end, they fail only by a user's mistake, which raises no alarm"
        yield Call.of(name, "cloudwatch:PutMetricData", "*", cloudwatch__namespace="Keyhop"), why
    yield from _scaling_calls()
    yield from _release_calls()
    yield from _report_calls()
    yield from _rekey_calls()
    why = "traffic of earlier hours is deleted (test_sharding_policy)"
    yield Call.of("ProposeDrains", "dynamodb:UpdateItem", table_arn(METADATA)), why
    why = "a single older shard remains (integration/sharding/test_table)"
    yield Call.of("WriteSharded", "dynamodb:GetItem", table_arn("Sharded")), why
    why = "counters are folded (integration/sharding/test_counter)"
    yield Call.of("MoveShards", "dynamodb:UpdateItem", table_arn("Sharded")), why
    why = "throttles without a reason are looked up for a while (test_sharding_throttles)"
    yield Call.of("WriteSharded", "cloudwatch:GetMetricData", "*"), why


def _scaling_calls() -> Iterator[tuple[Call, str]]:
    why = "DynamoDB Local has no auto scaling (test_key_index_steps)"
    scaling = "application-autoscaling"
    for action in ("DescribeScalableTargets", "DescribeScalingPolicies"):
        yield Call.of("ManageIndex", f"{scaling}:{action}", "*"), why
    target = f"arn:aws:{scaling}:{REGION}:{ACCOUNT}:scalable-target/0ec5"
    context = {
        f"{scaling}:service-namespace": "dynamodb",
        f"{scaling}:scalable-dimension": "dynamodb:index:WriteCapacityUnits",
    }
    for action in ("RegisterScalableTarget", "DeregisterScalableTarget", "PutScalingPolicy"):
        yield Call.of("ManageIndex", f"{scaling}:{action}", target, **context), why
    for action in ("DescribeAlarms", "PutMetricAlarm", "DeleteAlarms"):
        page = "Application Auto Scaling: Permissions validation for API calls, without a resource"
        yield Call.of("ManageIndex", f"cloudwatch:{action}", "*"), page


def _report_calls() -> Iterator[tuple[Call, str]]:
    function, why = "ExamineTable", "DynamoDB Local has no Contributor Insights (test_insights)"
    index = f"{table_arn('Reported')}/index/byState"
    yield Call.of(function, "dynamodb:DescribeContributorInsights", index), why
    rule = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:insight-rule"
    rule = f"{rule}/DynamoDBContributorInsights-PKC-Reported-1700000000000"
    yield Call.of(function, "cloudwatch:GetInsightRuleReport", rule), why
    why = "large collections are read again (integration/report/deployed/test_steps)"
    for resource in (table_arn("Reported"), index):
        yield Call.of(function, "dynamodb:Scan", resource), why
    yield Call.of(function, "dynamodb:Query", table_arn("Reported")), why
    why = "a sample may have a maxReadRate, like a run of EnumerateKeys"
    execution = states_arn("execution:Keyhop-SampleKeys:e1")
    yield Call.of("SampleTable", "states:ListMapRuns", execution), why
    map_run = states_arn("mapRun:Keyhop-SampleKeys/ScanGroups:m1")
    yield Call.of("SampleTable", "states:DescribeMapRun", map_run), why


def _rekey_calls() -> Iterator[tuple[Call, str]]:
    why = "transactions settle items that contend (integration/rekey/test_replicate)"
    yield Call.of("Replicate", "dynamodb:ConditionCheckItem", table_arn(SIDE)), why
    why = "stragglers are settled if the user accepts that (integration/rekey/test_side_table)"
    yield Call.of("CutOver", "dynamodb:ConditionCheckItem", table_arn(SIDE)), why
    why = "a backfill finds another owner (integration/rekey/test_backfill)"
    yield Call.of("BackfillItems", "dynamodb:GetItem", table_arn(PAIR[1])), why
    yield Call.of("BackfillItems", "dynamodb:PutItem", table_arn(SIDE)), why
    why = "a comparison may have a maxReadRate, like a run of EnumerateKeys"
    execution = states_arn(f"execution:{VERIFIES}:e1")
    yield Call.of("CompareBoth", "states:ListMapRuns", execution), why
    map_run = states_arn(f"mapRun:{VERIFIES}/ScanGroups:m1")
    yield Call.of("CompareBoth", "states:DescribeMapRun", map_run), why
    why = "a source is scanned if DynamoDB does not report its size yet (jobs/estimate)"
    yield Call.of("PlanRun", "dynamodb:Scan", table_arn(PAIR[0])), why


def _release_calls() -> Iterator[tuple[Call, str]]:
    why = "a table or the stack is removed (test_destroy, in make prove; test_release_keeper)"
    keeper = function_arn("Keyhop-KeepIndex")
    mapping = function_arn("1-2-3").replace(":function:", ":event-source-mapping:")
    function = "ReleaseKeeper"
    yield Call.of(function, "lambda:ListEventSourceMappings", "*"), why
    yield (
        Call.of(function, "lambda:DeleteEventSourceMapping", mapping, lambda__FunctionArn=keeper),
        why,
    )
    for action in ("DescribeTable", "UpdateTable"):
        yield Call.of(function, f"dynamodb:{action}", table_arn(METADATA)), why
    yield Call.of(function, "s3:GetObject", f"{BUCKET_ARN}/key-index/Kept-0/entry.json"), why


def _machine_calls(name: str) -> Iterator[tuple[Call, str]]:
    for action in (
        *("CreateLogDelivery", "GetLogDelivery", "UpdateLogDelivery", "DeleteLogDelivery"),
        *("ListLogDeliveries", "PutResourcePolicy", "DescribeResourcePolicies"),
        "DescribeLogGroups",
    ):
        page = "Step Functions: Using CloudWatch Logs to log execution history, IAM policies"
        yield Call.of(name, f"logs:{action}", "*"), page
    for action in (
        *("PutTraceSegments", "PutTelemetryRecords"),
        *("GetSamplingRules", "GetSamplingTargets"),
    ):
        page = "Step Functions: Trace requests with X-Ray, IAM policies"
        yield Call.of(name, f"xray:{action}", "*"), page


def _map_calls(name: str) -> Iterator[tuple[Call, str]]:
    page = "Step Functions: IAM policies for using Distributed Map states"
    machine = f"Keyhop-{name}"
    yield Call.of(name, "states:StartExecution", states_arn(f"stateMachine:{machine}")), page
    for action in ("DescribeExecution", "StopExecution"):
        yield Call.of(name, f"states:{action}", states_arn(f"execution:{machine}:e1")), page
    child = states_arn(f"execution:{machine}/ScanGroups:e1")
    yield Call.of(name, "states:RedriveExecution", child), page
    groups = f"{BUCKET_ARN}/runs/r1/groups/0.json"
    yield Call.of(name, "s3:GetObject", groups), f"{page}, ItemReader"
    for action in ("PutObject", "GetObject", "ListMultipartUploadParts", "AbortMultipartUpload"):
        yield Call.of(name, f"s3:{action}", RESULTS), f"{page}, ResultWriter"
