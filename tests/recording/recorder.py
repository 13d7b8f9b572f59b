"""Hears what the deployed functions ask of AWS, and has S3 answer them as their roles deserve."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any

from local.cloud import Cloud
from testing.iam.simulator import Call
from testing.validation import problems_of
from tests.infra.template import Deployed
from tests.recording.calls import Kinds, call_of_task, calls_of
from tests.recording.proxy import Answer, Judge, Request, proxy_before

Fault = Callable[[Request], Answer | None]
"""What answers some requests in the place of the server, with the service's own words."""

STACK = "Keyhop-"
SESSION = "x-amz-security-token"
"""Names the caller: a function's own name here, its role's session on AWS."""

FORBIDDEN = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>AccessDenied</Code><Message>User: %s is not authorized to perform: "
    b's3:ListBucket on resource: "%s" because no identity-based policy allows the s3:ListBucket '
    b"action</Message><RequestId>R</RequestId><HostId>H</HostId></Error>"
)
"""What S3 writes (User Guide, "Troubleshoot access denied errors")."""


class Recorder(Judge):
    """calls: all so far. template: of what is deployed, once it is.

    prefix: callers' names begin so; of others no call is taken down.
    """

    def __init__(self, kinds: Kinds, prefix: str = STACK) -> None:
        self.calls: set[Call] = set()
        self.template: Deployed | None = None
        self._prefix = prefix
        self._not_understood: list[Exception] = []
        self._kinds = kinds
        self._lock = Lock()
        self._read: set[str] = set()
        self._judged: set[Call] = set()
        self._faults: list[tuple[Fault, list[Request]]] = []

    def seen(self, server: str) -> AbstractContextManager[str]:
        """Stands before a server; gives the address that it has then."""
        return proxy_before(server, self)

    @contextmanager
    def answering(self, fault: Fault) -> Iterator[list[Request]]:
        """Has `fault` answer functions' requests until the block ends; yields those it answered."""
        answered: list[Request] = []
        self._faults.append((fault, answered))
        try:
            yield answered
        finally:
            self._faults.remove((fault, answered))

    def before(self, request: Request) -> Answer | None:
        if not request.headers.get(SESSION, "").startswith(self._prefix):
            return None
        for fault, answered in [*self._faults]:
            answer = fault(request)
            if answer is not None:
                answered.append(request)
                return answer
        return None

    def after(self, request: Request, answer: Answer) -> Answer:
        session = request.headers.get(SESSION, "")
        if not session.startswith(self._prefix):
            return answer
        try:
            _check(request)
            calls = set(calls_of(session.removeprefix(self._prefix), request, answer, self._kinds))
        except Exception as error:  # the function gets its answer all the same
            self._not_understood.append(error)
            return answer
        with self._lock:
            self.calls |= calls
        listing = [one for one in calls if one.action == "s3:ListBucket"]
        if answer.status == 404 and any(not self.is_allowed(one) for one in listing):
            told = FORBIDDEN % (session.encode(), listing[0].resource.encode())
            return Answer(403, told, {"Content-Type": "application/xml"})
        return answer

    def is_allowed(self, call: Call) -> bool:
        """Whether the caller's role allows it; before there are roles, all is."""
        return self.template is None or self.template.judge(call).allowed

    def denied(self) -> list[Call | Exception]:
        """Calls since the last time that the caller's role does not allow, or that are unknown."""
        with self._lock:
            new, self._judged = sorted(self.calls - self._judged), {*self.calls}
            unknown, self._not_understood = self._not_understood, []
        return [*unknown, *(call for call in new if not self.is_allowed(call))]

    def read_histories(self, cloud: Cloud) -> None:
        """Take down the tasks of all executions that have ended since the last time."""
        states = cloud.client("stepfunctions")
        for machine in states.list_state_machines()["stateMachines"]:
            if machine["name"].startswith(STACK):
                name = machine["name"].removeprefix(STACK)
                listed = states.get_paginator("list_executions")
                for execution in _ended(listed, stateMachineArn=machine["stateMachineArn"]):
                    self._read_one(states, name, execution)

    def _read_one(self, states: Any, machine: str, execution: str) -> None:
        if execution in self._read:
            return
        self._read.add(execution)
        pages = states.get_paginator("get_execution_history").paginate(executionArn=execution)
        for event in (event for page in pages for event in page["events"]):
            told = event.get("taskScheduledEventDetails")
            if told is not None:
                self.calls.add(call_of_task(machine, told["resource"], told["parameters"]))
        for run in states.list_map_runs(executionArn=execution)["mapRuns"]:
            listed = states.get_paginator("list_executions")
            for child in _ended(listed, mapRunArn=run["mapRunArn"]):
                self._read_one(states, machine, child)


def _check(request: Request) -> None:
    """What functions send to DynamoDB they send unchecked: botocore's validator looks at it."""
    if request.headers.get("x-amz-target", "").startswith("DynamoDB_"):
        problems = problems_of(request.operation, json.loads(request.body))
        assert not problems, f"{request.operation}: {problems}"


def _ended(listed: Any, **of: str) -> Iterator[str]:
    for page in listed.paginate(**of):
        for execution in page["executions"]:
            if execution["status"] != "RUNNING":
                yield execution["executionArn"]
