"""The result of a run: its keys, parts and manifest."""

import gzip
import json
from collections import Counter

import pytest

from testing.databases import BY_DAY, hashable
from tests.integration.fleet.conftest import SIZES, Fleet, names
from tests.machine import MOST_STATE_BYTES


def test_all_keys_of_a_table_in_many_groups(local: Fleet) -> None:
    expected = local.collections(SIZES, filling=300)
    result = local.run("first", segments=200, maxConcurrency=4)
    assert names(local, "first") == Counter(expected)
    manifest = local.manifest("first")
    assert manifest["finished"]
    assert manifest["groups"] == 7
    assert manifest["keys"] == result["keys"] == len(expected)
    assert manifest["segments"]["ended"] == 200
    assert sum(manifest["segments"]["keys"]) == len(expected)
    assert manifest["segments"]["skew"] >= 1
    assert manifest["cost"]["total"] > manifest["cost"]["dynamodb"] > 0
    assert result["manifest"] == "s3://results/runs/first/manifest.json"
    assert result["parts"] == "s3://results/runs/first/parts.json"
    assert "keys" not in result["segments"]


@pytest.mark.parametrize("type_", ["S", "N", "B"])
def test_all_key_types(local: Fleet, type_: str) -> None:
    local.create(("the key", type_), ("sort", type_))
    value = {"S": str, "N": str, "B": lambda n: b"%d" % n}[type_]
    keys = [{"the key": {type_: value(n)}} for n in range(100)]
    local.fill({**key, "sort": {type_: value(n)}} for key in keys for n in range(1, 4))
    local.run("run", segments=40)
    assert hashable(local.keys("run")) == hashable(keys)


def test_parts_are_gzip_files_of_typed_json_lines(local: Fleet) -> None:
    expected = local.collections([2] * 30)
    local.run("run")
    (part,) = local.manifest("run")["parts"]
    assert part["name"].endswith(".jsonl.gz")
    lines = gzip.decompress(local.object(f"runs/run/{part['name']}")).decode().splitlines()
    assert {json.loads(line)["pk"]["S"] for line in lines} == expected


def test_csv_with_a_header(local: Fleet) -> None:
    expected = local.collections([2] * 30)
    local.run("run", fileFormat="csv")
    (part,) = local.manifest("run")["parts"]
    assert part["name"].endswith(".csv.gz")
    lines = gzip.decompress(local.object(f"runs/run/{part['name']}")).decode().splitlines()
    assert lines[0] == "pk"
    assert set(lines[1:]) == expected
    assert names(local, "run") == Counter(expected)


def test_an_empty_table_and_a_table_without_a_sort_key(local: Fleet) -> None:
    local.create(sort=None)
    assert local.run("empty")["keys"] == 0
    local.fill({"pk": {"S": f"k{n}"}} for n in range(500))
    result = local.run("full", segments=40, maxConcurrency=3)
    assert (result["keys"], result["method"]) == (500, "scan")


def test_an_index_is_read_by_one_group_which_lists_each_key_once(local: Fleet) -> None:
    local.create(**BY_DAY)
    local.fill(
        {"pk": {"S": f"k{n}"}, "sk": {"S": "1"}, "day": {"S": f"d{n % 9}"}} for n in range(300)
    )
    result = local.run("run", index="by-day", segments=50, maxConcurrency=9)
    assert Counter(key["day"]["S"] for key in local.keys("run")) == Counter(
        f"d{n}" for n in range(9)
    )
    assert result["index"] == "by-day"


def test_a_dry_run_reads_a_sample_and_starts_no_run(local: Fleet) -> None:
    local.collections([3] * 400, filling=500)
    estimate = local.run("plan", dryRun=True, maxReadUnits=40)
    assert estimate["spent"]["read_units"] <= 40
    assert estimate["keys"]["low"] / 1.5 <= 400 <= estimate["keys"]["high"] * 1.5
    assert estimate["cost"]["total"] > 0
    assert local.runs.journal("plan").plan() is None


def test_a_million_segments_go_through_s3_and_leave_the_state_small(machine: Fleet) -> None:
    """An array of the groups would exceed the limit of 256 KiB, which passed_on asserts."""
    machine.collections([1] * 10)
    sizes = {}
    for segments in (64, 1_000_000):
        state = machine.plan({"table": machine.table, "segments": segments}, machine.execution())
        content = machine.object(state["groups"]["key"])
        sizes[segments] = len(content)
        items = json.loads(content)
        assert [item["group"] for item in items] == list(range(state["plan"]["groups"]))
    assert sizes[64] < MOST_STATE_BYTES < sizes[1_000_000]
