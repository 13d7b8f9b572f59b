"""A recorder of the deployed functions' AWS calls, which applies their roles to answers of S3."""

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
"""Answers some requests in place of the server, with the texts of the service."""

STACK = "Keyhop-"
SESSION = "x-amz-security-token"
"""The header that names the caller: its function here, and the session of its role on AWS."""

FORBIDDEN = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>AccessDenied</Code><Message>User: %s is not authorized to perform: "
    b's3:ListBucket on resource: "%s" because no identity-based policy allows the s3:ListBucket '
    b"action</Message><RequestId>R</RequestId><HostId>H</HostId></Error>"
)
"""The answer of S3 (User Guide, "Troubleshoot access denied errors")."""


class Recorder(Judge):
    """A recorder of the calls of callers whose names have a prefix.

    Attributes:
        calls: All calls so far.
        template: The deployed template, or None before the deployment.
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
        """Run a proxy before a server, and yield its address."""
        return proxy_before(server, self)

    @contextmanager
    def answering(self, fault: Fault) -> Iterator[list[Request]]:
        """Answer requests with `fault` until the block ends, and yield the answered ones."""
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
            _check_request(request)
            calls = set(calls_of(session.removeprefix(self._prefix), request, answer, self._kinds))
        except Exception as error:  # The function gets its answer nevertheless.
            self._not_understood.append(error)
            return answer
        with self._lock:
            self.calls |= calls
        listing = [call for call in calls if call.action == "s3:ListBucket"]
        if answer.status == 404 and any(not self.is_allowed(call) for call in listing):
            body = FORBIDDEN % (session.encode(), listing[0].resource.encode())
            return Answer(403, body, {"Content-Type": "application/xml"})
        return answer

    def is_allowed(self, call: Call) -> bool:
        """Return whether the caller's role allows a call, which is true before the deployment."""
        return self.template is None or self.template.judge(call).allowed

    def denied(self) -> list[Call | Exception]:
        """Return the denied calls and the errors of unreadable requests since the last call."""
        with self._lock:
            new, self._judged = sorted(self.calls - self._judged), {*self.calls}
            unknown, self._not_understood = self._not_understood, []
        return [*unknown, *(call for call in new if not self.is_allowed(call))]

    def read_histories(self, cloud: Cloud) -> None:
        """Record the tasks of all executions that have ended since the last call."""
        states = cloud.client("stepfunctions")
        for machine in states.list_state_machines()["stateMachines"]:
            if machine["name"].startswith(STACK):
                name = machine["name"].removeprefix(STACK)
                arn = machine["stateMachineArn"]
                for execution in _ended_executions(states, stateMachineArn=arn):
                    self._read_history(states, name, execution)

    def _read_history(self, states: Any, machine: str, execution: str) -> None:
        if execution in self._read:
            return
        self._read.add(execution)
        pages = states.get_paginator("get_execution_history").paginate(executionArn=execution)
        for event in (event for page in pages for event in page["events"]):
            task = event.get("taskScheduledEventDetails")
            if task is not None:
                self.calls.add(call_of_task(machine, task["resource"], task["parameters"]))
        for run in states.list_map_runs(executionArn=execution)["mapRuns"]:
            for child in _ended_executions(states, mapRunArn=run["mapRunArn"]):
                self._read_history(states, machine, child)


def _check_request(request: Request) -> None:
    """Validate a request with botocore, because the functions send unchecked requests."""
    if request.headers.get("x-amz-target", "").startswith("DynamoDB_"):
        problems = problems_of(request.operation, json.loads(request.body))
        assert not problems, f"{request.operation}: {problems}"


def _ended_executions(states: Any, **arguments: str) -> Iterator[str]:
    for page in states.get_paginator("list_executions").paginate(**arguments):
        for execution in page["executions"]:
            if execution["status"] != "RUNNING":
                yield execution["executionArn"]
