"""AWS calls as IAM sees them, read from HTTP requests and from tasks of state machines.

Values that differ between runs, such as run ids and table names, are replaced with an example, so
that two test runs have the same calls. ARNs have the account of tests/infra/template.py.
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
INVOCATION = re.compile(r"/2015-03-31/functions/(?P<function>[^/]+)/invocations")
STREAM = "2026-11-21T09:00:00.000"
MAPPING_ID = "1-2-3"
ACCOUNT_SETTINGS = "/2016-08-19/account-settings"
MAPPINGS = "/2015-03-31/event-source-mappings"
TRANSACTION_ACTIONS = {
    "Put": "PutItem",
    "Delete": "DeleteItem",
    "Update": "UpdateItem",
    "ConditionCheck": "ConditionCheckItem",
}
EXPRESSIONS = (
    *("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
    *("ConditionExpression", "UpdateExpression"),
)
PLACEHOLDER = re.compile(r"#\w+")
IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{10,}|\d+")


EXECUTION_NAMES = re.compile(r"((?:^|/)(?:groups/|levels/|estimate-))[\w-]+?(?=-0|\.json)")
"""Matches names of objects that begin with the name of an execution."""


@dataclass(frozen=True)
class Kinds:
    """The example of each kind of table, which replaces the names of tables in the record.

    Attributes:
        tables: The example by table name.
        default: The example of all other tables.
        unrestricted: The examples whose items are read and written with all attributes.
    """

    tables: Mapping[str, str]
    default: str
    unrestricted: frozenset[str]

    def __call__(self, table: str) -> str:
        """Return the example of a table, given its name or ARN."""
        return self.tables.get(table.rpartition("/")[2], self.default)


def calls_of(caller: str, request: Request, answer: Answer, kinds: Kinds) -> Iterator[Call]:
    """Yield the calls of a request that IAM would authorize."""
    target = request.headers.get("x-amz-target", "")
    if target.startswith("DynamoDBStreams"):
        arguments = json.loads(request.body)
        # DynamoDB Local's iterators begin with their stream.
        arn = arguments.get("StreamArn") or arguments["ShardIterator"]
        stream = f"{table_arn(kinds(arn.partition('/stream/')[0]))}/stream/{STREAM}"
        yield Call.of(caller, f"dynamodb:{request.operation}", stream)
    elif target.startswith("DynamoDB"):
        yield from _dynamodb_calls(caller, request.operation, json.loads(request.body), kinds)
    elif target.startswith("AWSStepFunctions"):
        arguments = json.loads(request.body)
        arns = [_states_example(arguments[name]) for name in arguments if name.endswith("Arn")]
        # A task token does not identify its state machine; CleanUp serves all jobs.
        for arn in arns or [states_arn(f"stateMachine:Keyhop-{job}") for job in JOBS]:
            yield Call.of(caller, f"states:{request.operation}", arn)
    elif target.startswith("AnyScaleFrontendService"):
        yield Call.of(caller, f"application-autoscaling:{request.operation}", "*")
    elif target.startswith("AmazonSQS"):
        yield Call.of(caller, f"sqs:{request.operation}", QUEUE_ARN)
    elif "GraniteServiceVersion20100801" in target + request.path:
        yield Call.of(caller, f"cloudwatch:{_metrics_operation(request)}", "*")
    elif b"Version=2010-08-01" in request.body:
        yield Call.of(caller, f"cloudwatch:{parse_qs(request.body.decode())['Action'][0]}", "*")
    elif b"Version=2010-05-15" in request.body:
        action = parse_qs(request.body.decode())["Action"][0]
        stack = states_arn("").replace(":states:", ":cloudformation:") + "stack/Keyhop/1"
        yield Call.of(caller, f"cloudformation:{action}", stack)
    elif request.path.startswith(ACCOUNT_SETTINGS):
        yield Call.of(caller, "lambda:GetAccountSettings", "*")
    elif invocation := INVOCATION.match(request.path):
        function = unquote(invocation["function"])
        name = function.rpartition(":")[2]
        arn = function_arn(name) if name.startswith("Keyhop-") else function
        yield Call.of(caller, "lambda:InvokeFunction", arn)
    elif request.path.startswith(MAPPINGS):
        yield from _mapping_calls(caller, request, answer)
    elif "/s3/" in request.headers.get("authorization", ""):
        yield from _s3_calls(caller, request, answer)
    else:
        raise AssertionError(f"{caller} sent an unknown request: {request}")


def call_of_task(machine: str, resource: str, parameters: str) -> Call:
    """Return the call of a Task state, given its resource and its parameters in JSON."""
    arguments = json.loads(parameters)
    if ":lambda:invoke" in resource:
        name = arguments["FunctionName"].rpartition(":")[2]
        return Call.of(machine, "lambda:InvokeFunction", function_arn(name))
    if ":aws-sdk:s3:putObject" in resource:
        return Call.of(machine, "s3:PutObject", f"{BUCKET_ARN}/{_example(arguments['Key'])}")
    if ":aws-sdk:cloudwatch:putMetricData" in resource:
        namespace = arguments["Namespace"]
        return Call.of(machine, "cloudwatch:PutMetricData", "*", cloudwatch__namespace=namespace)
    if ":states:startExecution" in resource:
        arn = _states_example(arguments["StateMachineArn"])
        return Call.of(machine, "states:StartExecution", arn)
    raise AssertionError(f"{machine} has an unknown task: {resource}")


def _dynamodb_calls(
    caller: str, operation: str, arguments: Mapping[str, Any], kinds: Kinds
) -> Iterator[Call]:
    if operation == "TransactWriteItems":
        # TransactWriteItems has no permission; the actions of its items are authorized
        # (Developer Guide, "Using IAM with DynamoDB transactions").
        for entry in arguments["TransactItems"]:
            ((kind, item),) = entry.items()
            yield from _dynamodb_calls(caller, TRANSACTION_ACTIONS[kind], item, kinds)
        return
    if operation == "ListTables":
        yield Call.of(caller, "dynamodb:ListTables", "*")
        return
    table = arguments.get("TableName") or arguments.get("ResourceArn") or ""
    tables = arguments.get("RequestItems") or {table: arguments}
    for name, table_arguments in tables.items():
        kind = kinds(name)
        arn = table_arn(kind)
        if "IndexName" in arguments:
            arn = f"{arn}/index/{arguments['IndexName']}"
        is_about_items = operation != "UpdateTable" and not operation.startswith("Describe")
        names_matter = is_about_items and kind not in kinds.unrestricted
        yield Call.of(
            caller,
            f"dynamodb:{operation}",
            arn,
            dynamodb__Select=arguments.get("Select"),
            dynamodb__Attributes=sorted(_attributes(table_arguments)) if names_matter else None,
        )


def _attributes(arguments: Any) -> set[str]:
    """Return the top-level attributes in the keys, items and expressions of a request."""
    if isinstance(arguments, list):  # BatchWriteItem
        requests = (request for entry in arguments for request in entry.values())
        return {name for request in requests for name in _attributes(request)}
    names = arguments.get("ExpressionAttributeNames", {})
    attributes: set[str] = set()
    for part in ("Key", "Item", "ExclusiveStartKey"):
        attributes |= set(arguments.get(part) or ())
    for key in arguments.get("Keys", ()):
        attributes |= set(key)
    for expression in EXPRESSIONS:
        placeholders = PLACEHOLDER.findall(arguments.get(expression) or "")
        attributes |= {names[placeholder] for placeholder in placeholders}
    return attributes


def _metrics_operation(request: Request) -> str:
    return request.operation or request.path.rpartition("/")[2]


def _mapping_calls(caller: str, request: Request, answer: Answer) -> Iterator[Call]:
    name = {"POST": "Create", "PUT": "Update", "DELETE": "Delete", "GET": "Get"}[request.method]
    identity = urlsplit(request.path).path.removeprefix(MAPPINGS).strip("/")
    if not identity and request.method == "GET":
        yield Call.of(caller, "lambda:ListEventSourceMappings", "*")
        return
    mapping = json.loads(request.body if request.method == "POST" else answer.body)
    function = str(mapping.get("FunctionArn") or mapping.get("FunctionName") or "")
    arn = function_arn(MAPPING_ID).replace(":function:", ":event-source-mapping:")
    yield Call.of(
        caller,
        f"lambda:{name}EventSourceMapping",
        arn if identity else "*",
        lambda__FunctionArn=function and function_arn(function.rpartition(":")[2]),
    )


def _s3_calls(caller: str, request: Request, answer: Answer) -> Iterator[Call]:
    parts = urlsplit(request.path)
    query = parse_qs(parts.query, keep_blank_values=True)
    key = _example(unquote(parts.path).lstrip("/").partition("/")[2])
    object_arn = f"{BUCKET_ARN}/{key}"
    if not key:
        prefix = _example(query.get("prefix", [""])[0])
        yield Call.of(caller, "s3:ListBucket", BUCKET_ARN, s3__prefix=prefix)
    elif request.method == "DELETE":
        action = "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
        yield Call.of(caller, f"s3:{action}", object_arn)
    elif request.method in ("GET", "HEAD"):
        yield Call.of(caller, "s3:GetObject", object_arn)
        if answer.status == 404:
            # Without it, S3 answers 403 (S3 API Reference, GetObject, "Permissions").
            yield Call.of(caller, "s3:ListBucket", BUCKET_ARN, s3__prefix=key)
    else:
        yield Call.of(caller, "s3:PutObject", object_arn)
        if "if-match" in request.headers:
            # If-Match also needs s3:GetObject (S3 User Guide, "Conditional writes").
            yield Call.of(caller, "s3:GetObject", object_arn)


def _example(key: str) -> str:
    """Return an object's key or prefix with examples in place of varying parts."""
    folder = re.match(r"(runs|key-index)/[^/]+/(.*)", key)
    if folder is None:
        return key
    root, rest = folder.groups()
    rest = EXECUTION_NAMES.sub(r"\1e", IDS.sub("0", rest))
    return f"{root}/{'r1' if root == 'runs' else 'Kept-0'}/{rest}"


def _states_example(arn: str) -> str:
    """Return an ARN of Step Functions with examples for the names of executions and map runs."""
    kind, _, name = arn.partition(":states:")[2].split(":", 2)[2].partition(":")
    first_part, colon, _ = name.partition(":")
    return states_arn(f"{kind}:{first_part}{colon}{'e1' if colon else ''}")
