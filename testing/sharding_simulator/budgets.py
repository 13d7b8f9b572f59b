"""A client whose requests the partition model admits or refuses, and a service in memory does."""

from collections import Counter
from typing import Any

from botocore.exceptions import ClientError

from testing.partitions import Partitions
from testing.simulation.service import Service


class Budgeted:
    """A client of any number of processes. Batches are not limited.

    writes: the number of single writes by table. claims: how many of them wrote a claim.
    """

    def __init__(self, service: Service, model: Partitions) -> None:
        self.writes: Counter[str] = Counter()
        self.claims = 0
        self._service = service
        self._model = model
        for name, table in service.tables.items():
            model.schemas[name] = (table.keys[0], f"arn:aws:dynamodb:::table/{name}")

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        if operation in ("put_item", "update_item", "delete_item"):
            self.writes[request["TableName"]] += 1
            self.claims += operation == "put_item" and "claimed_by" in request["Item"]
        name = "".join(word.capitalize() for word in operation.split("_"))
        refusal = self._model.judge(name, request).body
        if refusal is not None:
            code = refusal["__type"].partition("#")[2]
            error = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {}}
            raise ClientError({**error, **refusal}, name)
        return self._service.answer(operation, request)
