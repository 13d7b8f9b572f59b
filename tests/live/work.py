"""The steps of one start of the suite, in order, and its clean-up."""

import json
import os
import time
from collections.abc import Callable, Mapping
from functools import partial

from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.units import US_EAST_1

from tests.live.around import check_around, check_destroy, check_vpc
from tests.live.command import check_command
from tests.live.deployed import Deployed, find
from tests.live.features import check_features, stop_following
from tests.live.fixtures import OfOwnStack, enumerated
from tests.live.hot_keys import check_hot_keys
from tests.live.key_index import check_key_index, forget_scaling, life_of
from tests.live.newer import check_newer
from tests.live.report import Report, say
from tests.live.runs import Runs, check_runs
from tests.live.service import check_service, replace
from tests.live.stack import ENCLOSED, NAME, READER, OwnStack
from tests.live.streams import check_streams
from tests.live.suite import Suite
from tests.live.workshop import OwnKey, Workshop, remove_all

NOT_ITS_OWN = "only with a stack of the suite's own: STACK_NAME, STATE_MACHINE_ARN or WITHOUT_STACK"


class Work:
    """The work of one start, with everything that it creates, so that all of it is removed."""

    def __init__(self, suite: Suite, report: Report) -> None:
        self._suite = suite
        self._report = report
        self._workshop = Workshop(suite.client, suite.id, suite.ways)
        self._key = OwnKey(suite.id)
        self._stacks: list[OwnStack] = []
        self._outputs: dict[str, str] = {}
        self._runs: list[Runs] = []
        self._read_units = 0.0
        self._scales = False

    def do(self) -> None:
        """Make all checks, and report those that cannot be made here as skipped."""
        suite, report = self._suite, self._report
        stack_tables = self._stack_tables() if suite.has_own_stack else None
        say("Making and loading the tables ...")
        added = stack_tables.made(suite.ways.stack_makes_tables) if stack_tables else []
        self._workshop.make([*suite.tables, *added])
        say("What Keyhop relies on")
        self._read_units = check_service(suite.client, suite.tables, suite.ways, report)
        say("keyhop keys")
        check_command(suite.tables, report)
        if suite.deployed is not None:
            self._check_machine(self._runs_of(suite.deployed))
        if stack_tables is not None:
            self._check_own_stack(stack_tables)
        report.skip_the_rest(NOT_ITS_OWN)
        self._say_the_cost()

    def _stack_tables(self) -> OfOwnStack:
        key = self._key.make() if "kms" not in self._suite.ways.lacks else None
        return OfOwnStack.of(self._suite.prefix, key)

    def _check_own_stack(self, stack_tables: OfOwnStack) -> None:
        suite, report = self._suite, self._report
        if suite.ways.has_table_id:
            table = stack_tables.twice
            create = partial(self._workshop.make, [table])
            report.check("table-identity", lambda: replace(suite.client, table, create), table.name)
        say("A stack of its own, with logLevel ERROR")
        tables = [*(table.name for table in enumerated(suite.tables)), *stack_tables.context()]
        context = {
            "settings": "",  # not those of the user's deployment
            "tables": json.dumps(tables),
            "logLevel": "ERROR",
            "verifyIndexSchedule": "never",
            "shrinkSchedule": "never",
            "verifySchedule": "never",
        }
        pair = {"source": stack_tables.orders.name, "destination": stack_tables.by_tenant}
        context["rekey"] = json.dumps([pair])
        if not suite.ways.stack_makes_tables:
            context["dynamodbEndpoint"] = os.environ["AWS_ENDPOINT_URL_DYNAMODB"]
        stack = self._stack_of(context, NAME)
        self._workshop.expect(stack_tables.made_by_rekey)
        outputs = self._outputs = stack.deploy()
        runs = self._runs_of(find(outputs["StateMachineArn"], NAME))
        self._check_machine(runs)
        say("Streams")
        endpoint_url = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB")
        streams = aws_client("dynamodbstreams", Endpoint(suite.region, url=endpoint_url))
        followed = next(table for table in stack_tables.kept if table.streams)
        check_streams(suite.client, streams, followed, report)
        check_newer(suite.client, streams, followed, stack_tables.full, runs.bucket, report)
        say("The key index")
        self._scales = "scaling" not in suite.ways.lacks
        check_key_index(suite.client, stack_tables.kept, runs, outputs, report)
        say("Actions, reports and re-keys")
        check_features(suite.client, stack_tables, runs, outputs, report)
        say("Hot keys")
        check_hot_keys(suite.client, stack_tables, runs, outputs, report)
        say("Around the runs")
        reader = self._stack_of({}, READER, "tests.live.reader_app")
        check_around(reader, stack_tables, runs, outputs, report)
        say("The deployment")
        context = {"table": stack_tables.enclosed.name}
        enclosed = self._stack_of(context, ENCLOSED, "tests.live.vpc_app")
        check_vpc(enclosed, stack_tables.enclosed, self._runs_of, report)
        plain = next(table for table in suite.tables if table.shape == "plain")
        life = life_of(suite.client, stack_tables.kept[0], runs, outputs)
        check_destroy(stack, stack_tables, plain, runs, self._runs_of, life, report)

    def _check_machine(self, runs: Runs) -> None:
        say("The state machine")
        check_runs(enumerated(self._suite.tables), runs, self._suite.ways, self._report)

    def _runs_of(self, deployed: Deployed) -> Runs:
        runs = Runs(deployed, f"{self._suite.id}-{len(self._runs)}", self._suite.ways)
        self._runs.append(runs)
        return runs

    def _stack_of(self, context: Mapping[str, str], name: str, app: str | None = None) -> OwnStack:
        stack = OwnStack(self._suite.id, self._suite.ways, context, name=name, app=app)
        self._stacks.append(stack)
        return stack

    def _say_the_cost(self) -> None:
        suite = self._suite
        dollars = US_EAST_1.dollars(
            self._workshop.read_units + self._read_units,
            sum(table.write_units for table in suite.tables),
        ) + sum(runs.dollars for runs in self._runs)
        say(
            f"It cost about ${dollars:.4f}, the reads of keyhop keys and what a stack of its own "
            f"did besides runs not counted; at most ${suite.expected.dollars:.4f} were expected."
        )

    def clean_up(self) -> list[str]:
        """Remove everything that was created; return what could not be removed, and why."""
        say("Cleaning up ...")
        # Step Functions stops executions, but not the functions that they have invoked. Those end
        # when they notice that the table is gone; after that, nothing more is written.
        steps: list[Callable[[], list[str]]] = [runs.end for runs in self._runs]
        steps += [self._stop_following] if self._outputs else []
        steps.append(self._workshop.remove)
        if self._runs:
            steps.append(self._wait_for_functions)
        steps += [runs.delete for runs in self._runs] if not self._suite.has_own_stack else []
        steps += [self._forget_scaling] if self._scales else []
        steps += [stack.remove for stack in reversed(self._stacks)]
        steps.append(self._key.remove)
        failures = remove_all(steps)
        if failures:
            say("NOT REMOVED:" + "".join(f"\n  {failure}" for failure in failures))
            if self._suite.has_own_stack:
                say(f"To try again later: make live REMOVE={self._suite.id}")
        else:
            say("All tables and objects that it made are removed.")
        if self._runs:
            say(
                "Histories of its executions, metrics and traces go when their retention is over; "
                "what cdk uploaded stays in its own bucket (npx cdk gc), and the role of auto "
                "scaling in the account."
            )
        return failures

    def _stop_following(self) -> list[str]:
        return stop_following(self._outputs["ReplicateArn"], self._suite.ways.poll_seconds)

    def _forget_scaling(self) -> list[str]:
        """Remove the auto scaling of an index whose removal was not completed."""
        tables = self._suite.stack_tables.kept
        return forget_scaling(table.name for table in tables if table.capacity)

    def _wait_for_functions(self) -> list[str]:
        time.sleep(self._suite.ways.last_write_seconds)
        return []
