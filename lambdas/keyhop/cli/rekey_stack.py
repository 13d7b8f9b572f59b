"""A deployment that does a re-key: a function follows the streams, state machines do the rest.

The side table records which deployment, from `start --stack` on.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keyhop.cli.exit_status import DONE, INTERRUPTED
from keyhop.cli.options import Options
from keyhop.cli.output import is_text, printable, put_out
from keyhop.cli.runs_actions import Beside, exit_status_of, follow, put_out_start
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.errors import CannotStart
from keyhop.public.deployment import Deployment, open_stack
from keyhop.rekey.cutover.deployed import Deployed
from keyhop.rekey.pair import Pair
from keyhop.rekey.worker.mapping import SETTINGS
from keyhop.streams.event_source import Mappings

End = Callable[[Any], tuple[int, Sequence[str]]]

FUNCTION, QUEUE = "ReplicateArn", "RekeyFailureQueueArn"
"""Outputs of the stack."""


class RekeyStack:
    """A deployment that has the field `rekey`."""

    def __init__(self, name: str, endpoint: Endpoint, options: Options) -> None:
        self.name = name
        self._options = options
        self._stack = open_stack(name, endpoint)
        if FUNCTION not in self._stack.outputs:
            raise CannotStart(
                f"The stack {name!r} re-keys no tables: name the pair in the field rekey of its "
                "keyhop.json, and deploy it again."
            )

    def followers(self) -> Mappings:
        """Return the event source mappings of the function that follows the streams."""
        outputs = self._stack.outputs
        client = self._stack.client("lambda")
        return Mappings(client, outputs[FUNCTION], outputs[QUEUE], settings=SETTINGS)

    def deployed(self, connection: Connection, pair: Pair) -> Deployed:
        """Return the deployment as a cutover of this pair sees it."""
        client, outputs = self._stack.client, self._stack.outputs
        return Deployed(
            client("lambda"),
            client("sqs"),
            outputs[FUNCTION],
            outputs[QUEUE],
            pair,
            lambda table: look_up(connection, table).stream,
        )

    def run(
        self, machine: str, given: Mapping[str, Any], end: End, beside: Beside = lambda: ("", ())
    ) -> int:
        """Start an execution, with --follow wait for its end, and return an exit status.

        `end` turns its output into an exit status and lines.
        """
        options, stack = self._options, self._stack
        run = Deployment(stack).start(given, machine=machine)
        if not options.follow:
            put_out_start(options, stack, run)
            return DONE
        ended = follow(stack, run, options.quiet, beside)
        if ended is None:
            return INTERRUPTED
        status, lines = end(ended.output) if ended.has_succeeded else (exit_status_of(ended), ())
        report = {"run": ended.name, "status": ended.status}
        if ended.output is not None:
            report["result"] = ended.output
        if not is_text(options.format) or (lines and not options.quiet):
            put_out(options.format, report, lambda: "\n".join(lines))
        if not ended.has_succeeded:
            told_of = f"{printable(ended.error or 'error')}: {printable(ended.cause or '')}"
            print(f"keyhop: {told_of}", file=sys.stderr)
        return status
