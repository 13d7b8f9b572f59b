"""What the runs of a fleet ask of the key index: what to read, and who visits the pages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import Target, describe
from keyhop.jobs.layout import Choice
from keyhop.jobs.model import RunPlan
from keyhop.jobs.request import InvalidInput, allowed, table_name
from keyhop.jobs.runs import Runs
from keyhop.key_index.belief import choose_source
from keyhop.key_index.collections import Collections
from keyhop.key_index.index import TableState
from keyhop.key_index.registry import Book, folder_of
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import Walk, Walker
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.storage.s3 import Bucket


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The key indexes of a deployment.

    places: for each of its tables with keyIndex, as the context names it, the sentinels' sort key,
    None for the least one.
    """

    runs: Runs
    places: Mapping[str, str | None]

    def checked(self, table: str) -> str:
        """The table as requests name it; raises InvalidInput for one without keyIndex."""
        try:
            return allowed(table, list(self.places))
        except InvalidInput as error:
            listed = ", ".join(self.places) or "none"
            raise InvalidInput(
                f"Table {table!r} has no keyIndex in this deployment (those that have: {listed}): "
                f'write {{"table": "{table_name(table)}", "keyIndex": true}} into "tables" in '
                f"cdk.json and deploy again."
            ) from error

    def book(self, state: TableState) -> Book:
        """Where what is known about a table's key index is written down."""
        store = Bucket(
            self.runs.s3, self.runs.bucket, f"key-index/{folder_of(state.name, state.identity)}/"
        )
        return Book(store, state.identity)

    def sentinel(self, table: str, space: KeySpace) -> Sentinel:
        """The sentinels of a table; raises CannotStart if it can have none."""
        return Sentinel.of(space, self.places.get(table))

    def source(
        self,
        client: DynamoDB,
        endpoint: Endpoint,
        target: Target,
        asked: str,
        walk: Mapping[str, Any] | None,
    ) -> tuple[Target, Choice]:
        """What to read, and how; see enumerate/fleet/planning.py."""
        if walk is not None:
            self.checked(target.name)
            kind = Walk.from_json(walk).kind
            sentinel = self.sentinel(target.name, target.space)
            if kind == "remove" and target.has_key_index:
                index = describe(client, endpoint, target.name, INDEX)
                return replace(index, sentinel=sentinel), Choice("index", "to remove it")
            return replace(target, sentinel=sentinel), Choice("skip", f"to {kind} the key index")
        place = self.places.get(target.name)
        return choose_source(client, endpoint, target, asked, self.book, place)

    def walker(
        self,
        plan: RunPlan,
        reader: PageReader,
        client: DynamoDB,
        endpoint: Endpoint,
        patience: float,
    ) -> Walker:
        """The visitor of a run for the key index; see enumerate/fleet/working.py."""
        assert plan.walk is not None
        assert reader.target.sentinel is not None
        collections = Collections(
            client,
            plan.table,
            reader.target.sentinel,
            writes=Budget(),
            endpoint=endpoint,
            patience=patience,
            stop=reader.stop,
        )
        return Walker(Walk.from_json(plan.walk), reader, collections)
