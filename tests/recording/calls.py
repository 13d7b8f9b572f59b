"""AWS calls as IAM sees them: read from requests on the wire, and from tasks of state machines.

What differs from run to run is written as one example of its kind (a run's id, a table's name), so
that the calls of two test runs are the same; ARNs are of the account of tests/infra/template.py.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from testing.iam.simulator import Call
from tests.infra.template import BUCKET_ARN, QUEUE_ARN, function_arn, states_arn, table_arn
from tests.recording.proxy import Answer, Request

JOBS = (
    *("EnumerateKeys", "WalkKeyIndexes", "ForEachKey", "SampleKeys"),
    *("RekeyBackfill", "RekeyVerify"),
)
INVOKED = re.compile(r"/2015-03-31/functions/(?P<function>[^/]+)/invocations")
STREAM = "2026-11-21T09:00:00.000"
MAPPING_ID = "1-2-3"
ACCOUNT_SETTINGS = "/2016-08-19/account-settings"
MAPPINGS = "/2015-03-31/event-source-mappings"
TRANSACTED = {
    "Put": "PutItem",
    "Delete": "DeleteItem",
    "Update": "UpdateItem",
    "ConditionCheck": "ConditionCheckItem",
}
EXPRESSIONS = (
    *("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
    *("ConditionExpression", "UpdateExpression"),
)
NAMED = re.compile(r"#\w+")
IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{10,}|\d+")


OF_EXECUTIONS = re.compile(r"((?:^|/)(?:groups/|levels/|estimate-))[\w-]+?(?=-0|\.json)")
"""Names of objects that begin with an execution's name."""


@dataclass(frozen=True)
class Kinds:
    """By which name a deployment's tables go in the record: of each kind one.

    plain: that of all others. whole: those whose items are written and read with all attributes.
    """

    tables: Mapping[str, str]
    plain: str
    whole: frozenset[str]

    def __call__(self, table: str) -> str:
        """table: a name or an ARN."""
        return self.tables.get(table.rpartition("/")[2], self.plain)


def calls_of(caller: str, request: Request, answer: Answer, kinds: Kinds) -> Iterator[Call]:
    """What a request asks for; nothing for what is no AWS call."""
    target = request.headers.get("x-amz-target", "")
    if target.startswith("DynamoDBStreams"):
        given = json.loads(request.body)
        # DynamoDB Local's iterators begin with their stream.
        arn = given.get("StreamArn") or given["ShardIterator"]
        stream = f"{table_arn(kinds(arn.partition('/stream/')[0]))}/stream/{STREAM}"
        yield Call.of(caller, f"dynamodb:{request.operation}", stream)
    elif target.startswith("DynamoDB"):
        yield from _of_dynamodb(caller, request.operation, json.loads(request.body), kinds)
    elif target.startswith("AWSStepFunctions"):
        given = json.loads(request.body)
        arns = [_states(given[name]) for name in given if name.endswith("Arn")]
        # A task's token does not say of which machine it is: CleanUp serves both jobs alike.
        for arn in arns or [states_arn(f"stateMachine:Keyhop-{job}") for job in JOBS]:
            yield Call.of(caller, f"states:{request.operation}", arn)
    elif target.startswith("AnyScaleFrontendService"):
        yield Call.of(caller, f"application-autoscaling:{request.operation}", "*")
    elif target.startswith("AmazonSQS"):
        yield Call.of(caller, f"sqs:{request.operation}", QUEUE_ARN)
    elif "GraniteServiceVersion20100801" in target + request.path:
        yield Call.of(caller, f"cloudwatch:{_of_metrics(request)}", "*")
    elif b"Version=2010-08-01" in request.body:
        yield Call.of(caller, f"cloudwatch:{parse_qs(request.body.decode())['Action'][0]}", "*")
    elif b"Version=2010-05-15" in request.body:
        action = parse_qs(request.body.decode())["Action"][0]
        stack = states_arn("").replace(":states:", ":cloudformation:") + "stack/Keyhop/1"
        yield Call.of(caller, f"cloudformation:{action}", stack)
    elif request.path.startswith(ACCOUNT_SETTINGS):
        yield Call.of(caller, "lambda:GetAccountSettings", "*")
    elif invoked := INVOKED.match(request.path):
        function = unquote(invoked["function"])
        name = function.rpartition(":")[2]
        is_ours = name.startswith("Keyhop-")
        yield Call.of(caller, "lambda:InvokeFunction", function_arn(name) if is_ours else function)
    elif request.path.startswith(MAPPINGS):
        yield from _of_mappings(caller, request, answer)
    elif "/s3/" in request.headers.get("authorization", ""):
        yield from _of_s3(caller, request, answer)
    else:
        raise AssertionError(f"{caller} asks what is not known here: {request}")


def call_of_task(machine: str, resource: str, parameters: str) -> Call:
    """What a Task of a state machine asks for. resource: the state's; parameters: JSON."""
    given = json.loads(parameters)
    if ":lambda:invoke" in resource:
        name = given["FunctionName"].rpartition(":")[2]
        return Call.of(machine, "lambda:InvokeFunction", function_arn(name))
    if ":aws-sdk:s3:putObject" in resource:
        return Call.of(machine, "s3:PutObject", f"{BUCKET_ARN}/{_example(given['Key'])}")
    if ":aws-sdk:cloudwatch:putMetricData" in resource:
        namespace = given["Namespace"]
        return Call.of(machine, "cloudwatch:PutMetricData", "*", cloudwatch__namespace=namespace)
    if ":states:startExecution" in resource:
        return Call.of(machine, "states:StartExecution", _states(given["StateMachineArn"]))
    raise AssertionError(f"{machine} has a task that is not known here: {resource}")


def _of_dynamodb(
    caller: str, operation: str, given: Mapping[str, Any], kinds: Kinds
) -> Iterator[Call]:
    if operation == "TransactWriteItems":
        # "There is no permission for TransactWriteItems; those of its items are asked for"
        # (Developer Guide, "Using IAM with DynamoDB transactions").
        for one in given["TransactItems"]:
            ((kind, item),) = one.items()
            yield from _of_dynamodb(caller, TRANSACTED[kind], item, kinds)
        return
    if operation == "ListTables":
        yield Call.of(caller, "dynamodb:ListTables", "*")
        return
    about = given.get("TableName") or given.get("ResourceArn") or ""
    tables = given.get("RequestItems") or {about: given}
    for name, asked in tables.items():
        kind = kinds(name)
        arn = table_arn(kind)
        if "IndexName" in given:
            arn = f"{arn}/index/{given['IndexName']}"
        is_about_items = operation != "UpdateTable" and not operation.startswith("Describe")
        names_matter = is_about_items and kind not in kinds.whole
        yield Call.of(
            caller,
            f"dynamodb:{operation}",
            arn,
            dynamodb__Select=given.get("Select"),
            dynamodb__Attributes=sorted(_attributes(asked)) if names_matter else None,
        )


def _attributes(given: Any) -> set[str]:
    """The top-level attributes that a request names: of keys, of items, and in expressions."""
    if isinstance(given, list):  # of BatchWriteItem
        return {name for one in given for put in one.values() for name in _attributes(put)}
    names = given.get("ExpressionAttributeNames", {})
    found: set[str] = set()
    for part in ("Key", "Item", "ExclusiveStartKey"):
        found |= set(given.get(part) or ())
    for key in given.get("Keys", ()):
        found |= set(key)
    for expression in EXPRESSIONS:
        found |= {names[one] for one in NAMED.findall(given.get(expression) or "")}
    return found


def _of_metrics(request: Request) -> str:
    return request.operation or request.path.rpartition("/")[2]


def _of_mappings(caller: str, request: Request, answer: Answer) -> Iterator[Call]:
    name = {"POST": "Create", "PUT": "Update", "DELETE": "Delete", "GET": "Get"}[request.method]
    identity = urlsplit(request.path).path.removeprefix(MAPPINGS).strip("/")
    if not identity and request.method == "GET":
        yield Call.of(caller, "lambda:ListEventSourceMappings", "*")
        return
    told = json.loads(request.body if request.method == "POST" else answer.body)
    function = str(told.get("FunctionArn") or told.get("FunctionName") or "")
    arn = function_arn(MAPPING_ID).replace(":function:", ":event-source-mapping:")
    yield Call.of(
        caller,
        f"lambda:{name}EventSourceMapping",
        arn if identity else "*",
        lambda__FunctionArn=function and function_arn(function.rpartition(":")[2]),
    )


def _of_s3(caller: str, request: Request, answer: Answer) -> Iterator[Call]:
    parts = urlsplit(request.path)
    query = parse_qs(parts.query, keep_blank_values=True)
    key = _example(unquote(parts.path).lstrip("/").partition("/")[2])
    at = f"{BUCKET_ARN}/{key}"
    if not key:
        prefix = _example(query.get("prefix", [""])[0])
        yield Call.of(caller, "s3:ListBucket", BUCKET_ARN, s3__prefix=prefix)
    elif request.method == "DELETE":
        action = "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
        yield Call.of(caller, f"s3:{action}", at)
    elif request.method in ("GET", "HEAD"):
        yield Call.of(caller, "s3:GetObject", at)
        if answer.status == 404:
            yield from _to_see_that_it_is_missing(caller, key)
    else:
        yield Call.of(caller, "s3:PutObject", at)
        if "if-match" in request.headers:
            # S3 User Guide, "Conditional writes": If-Match needs s3:GetObject besides.
            yield Call.of(caller, "s3:GetObject", at)


def _to_see_that_it_is_missing(caller: str, key: str) -> Iterator[Call]:
    """Else S3 answers 403 and not 404 (S3 API Reference, GetObject, "Permissions")."""
    yield Call.of(caller, "s3:ListBucket", BUCKET_ARN, s3__prefix=key)


def _example(key: str) -> str:
    """The key of an object, or a prefix, with one example for each thing that differs."""
    folder = re.match(r"(runs|key-index)/[^/]+/(.*)", key)
    if folder is None:
        return key
    root, rest = folder.groups()
    rest = OF_EXECUTIONS.sub(r"\1e", IDS.sub("0", rest))
    return f"{root}/{'r1' if root == 'runs' else 'Kept-0'}/{rest}"


def _states(arn: str) -> str:
    """One with an example for an execution's or a map run's name."""
    kind, _, name = arn.partition(":states:")[2].split(":", 2)[2].partition(":")
    named, colon, _ = name.partition(":")
    return states_arn(f"{kind}:{named}{colon}{'e1' if colon else ''}")
