"""Databases and buckets with the same content in every capture."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from keyhop.jobs.runs import Runs

from testing.databases import BY_DAY, Database
from testing.s3 import MemoryS3
from testing.standin.server import running
from tests.machine import Machine


@contextmanager
def empty_environment() -> Iterator[tuple[Path, pytest.MonkeyPatch]]:
    """Yield an empty directory, and an environment without the user's settings."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            patch.setenv(name, "us-east-1")
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, os.devnull)
        for name in ("AWS_PROFILE", "KEYHOP_DEBUG"):
            patch.delenv(name, raising=False)
        patch.setenv("XDG_STATE_HOME", f"{folder}/state")
        yield Path(folder), patch


@contextmanager
def stand_in() -> Iterator[Database]:
    """Yield a stand-in with the tables Orders and Flat, whose creation time is fixed."""
    with running() as server:
        database = Database("stand_in", server.url)
        for name in ("Orders", "Flat"):
            database.create(name, **BY_DAY, **({"sort": None} if name == "Flat" else {}))
            server.service.tables[name].created = 1_700_000_000.0
        database.fill("Orders", items())
        yield database


def items() -> Iterator[dict[str, Any]]:
    """Yield items of 40 partition keys, mostly shards of 8 logical keys, and two index keys."""
    for number in range(40):
        pk = f"/f{number % 8}.txt_{number // 8 + 1}" if number < 36 else f"/plain{number}"
        for item in range(1 + number % 3 * 4):
            day = {"day": {"S": f"day{number % 2}"}} if item else {}
            yield {"pk": {"S": pk}, "sk": {"S": f"{item:03}"}, "x": {"S": "x" * 1500}, **day}


KEYS = sorted({item["pk"]["S"] for item in items()})


@contextmanager
def machine_on(database: Database, table: str) -> Iterator[Machine]:
    """Yield a fleet on a table, with S3 in memory."""
    with empty_environment() as (_, patch):
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", database.url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "nobody")
        yield Machine(Runs(MemoryS3("results"), "results", [table]))


def objects(machine: Machine) -> dict[str, bytes]:
    """Return all objects in the bucket."""
    pages = machine.runs.s3.get_paginator("list_objects_v2").paginate(Bucket=machine.runs.bucket)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
    return {key: machine.object(key) for key in keys}
