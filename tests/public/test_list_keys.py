"""`keyhop.list_keys` and `keyhop.estimate_keys`, as a Python program calls them."""

import gc
import io
import json
import os
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import keyhop
import pytest
from keyhop.key_index.registry import local_registry

from testing.databases import BY_DAY, Database
from testing.servers import LOCAL_CREDENTIALS
from testing.simulation.service import failure
from testing.standin.server import StandIn
from tests.public.conftest import boto3s_table


@pytest.fixture
def all_threads_end() -> Iterator[None]:
    """Check that all threads of a list have ended. The stand-in has other threads."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 10
    while threads := [t for t in set(threading.enumerate()) - before if _is_of_keyhop(t)]:
        assert time.monotonic() < deadline, threads
        for thread in threads:
            thread.join(0.1)


def _is_of_keyhop(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", "").startswith("keyhop.")


def list_keys(database: Database, table: Any, **arguments: Any) -> keyhop.Keys:
    return keyhop.list_keys(table, endpoint_url=database.url, **arguments)


def test_keys_are_python_values_and_the_summary_follows(
    database: Database, table_name: str
) -> None:
    expected = database.collections(table_name, [3] * 40)
    keys = list_keys(database, table_name)
    assert keys.summary.requests == 0
    assert sorted(keys) == sorted(expected)
    summary = keys.summary
    assert (summary.keys, summary.finished, summary.method) == (40, True, "skip")
    assert summary.read_units > 0
    assert summary.dollars > 0
    assert "sort key" in summary.reason
    assert summary.to_json()["segments"] >= 1
    assert "k1" not in repr(keys)
    assert "40 keys" in repr(keys)
    assert list(keys) == []


@pytest.mark.parametrize(("type_", "value"), [("N", Decimal("-1.50")), ("B", b"\x00\xff")])
def test_numbers_are_decimals_and_binary_is_bytes(
    strict: Database, table_name: str, type_: str, value: Any
) -> None:
    strict.create(table_name, ("pk", type_))
    content = "-1.5" if type_ == "N" else value
    strict.fill(table_name, [{"pk": {type_: content}, "sk": {"S": "a"}}])
    assert list(list_keys(strict, table_name)) == [value]
    assert type(next(list_keys(strict, table_name))) is type(value)
    (typed,) = list_keys(strict, table_name, typed=True)
    assert json.loads(json.dumps(typed)) == {"pk": {type_: "-1.5" if type_ == "N" else "AP8="}}
    table = boto3s_table(strict, table_name)
    assert list(keyhop.list_keys(table)) == [value]


def test_a_session_has_the_credentials_and_the_region(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = strict.collections(table_name, [1] * 5)
    session = boto3.Session(**LOCAL_CREDENTIALS)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    assert set(list_keys(strict, table_name, session=session)) == expected


def test_a_table_by_its_arn(strict: Database, stand_in: StandIn, table_name: str) -> None:
    """The ARN determines the region, and requests have it instead of the name."""
    expected = strict.collections(table_name, [1] * 5)
    arn = f"arn:aws:dynamodb:eu-west-1:111122223333:table/{table_name}"
    answer, names = stand_in.answer, set()

    def by_arn(operation: str, request: Any) -> Any:
        names.add(request["TableName"])
        return answer(operation, {**request, "TableName": table_name})

    stand_in.answer = by_arn  # type: ignore[method-assign]
    keys = list_keys(strict, arn)
    assert set(keys) == expected
    assert names == {arn}
    assert "eu-west-1" in keys.summary.to_json()["price"]


def test_the_client_of_a_table_sends_all_requests(strict: Database, table_name: str) -> None:
    expected = strict.collections(table_name, [2] * 30)
    table = boto3s_table(strict, table_name)
    operations: list[str] = []
    table.meta.client.meta.events.register(
        "before-call.dynamodb", lambda model, **_: operations.append(model.name)
    )
    keys = keyhop.list_keys(table)
    assert set(keys) == expected
    assert set(operations) == {"DescribeTable", "Scan"}
    assert len(operations) == keys.summary.requests + 1


def test_the_keys_of_an_index(strict: Database, table_name: str) -> None:
    strict.create(table_name, **BY_DAY)
    strict.fill(
        table_name,
        ({"pk": {"S": f"k{n}"}, "sk": {"S": "a"}, "day": {"S": f"d{n % 3}"}} for n in range(9)),
    )
    keys = list_keys(strict, table_name, index="by-day")
    assert sorted(keys) == ["d0", "d1", "d2"]
    assert keys.summary.index == "by-day"
    with pytest.raises(keyhop.errors.IndexNotFound, match="Did you mean"):
        list_keys(strict, table_name, index="by-dya")


def test_a_limit_ends_the_list(
    strict: Database, stand_in: StandIn, table_name: str, all_threads_end: None
) -> None:
    strict.collections(table_name, [3] * 3_000, filling=500)
    keys = list_keys(strict, table_name, limit=7)
    assert len(set(keys)) == 7
    assert not keys.summary.finished
    assert stand_in.requests["Scan"] < 200
    assert len(list(list_keys(strict, table_name, limit=4_000))) == 3_000


def test_a_limit_ends_the_output(
    strict: Database, stand_in: StandIn, table_name: str, all_threads_end: None
) -> None:
    expected = strict.collections(table_name, [3] * 3_000, filling=500)
    out = io.BytesIO()
    summary = list_keys(strict, table_name, limit=7, format="csv").write_to(out)
    header, *keys = out.getvalue().decode().splitlines()
    assert (header, len(set(keys)), set(keys) <= expected) == ("pk", 7, True)
    assert (summary.keys, summary.finished) == (7, False)
    assert stand_in.requests["Scan"] < 200
    with pytest.raises(keyhop.errors.CannotStart, match="run reads all keys: leave limit out"):
        list_keys(strict, table_name, limit=7).run()


def test_run_counts_logical_keys(strict: Database, table_name: str) -> None:
    strict.create(table_name)
    keys = [f"a_{shard}" for shard in range(1, 8)] + ["b"]
    strict.fill(table_name, ({"pk": {"S": key}, "sk": {"S": "1"}} for key in keys))
    assert list_keys(strict, table_name, logical=True).run().keys == 2


def test_an_abandoned_iterator_stops_its_threads(
    strict: Database, stand_in: StandIn, table_name: str, all_threads_end: None
) -> None:
    strict.collections(table_name, [2] * 3_000, filling=500)
    keys = list_keys(strict, table_name)
    assert next(keys).startswith("k")
    del keys
    gc.collect()
    with list_keys(strict, table_name) as closed:
        next(closed)
    assert not closed.summary.finished
    unused = list_keys(strict, table_name)
    assert unused.summary.requests == 0


def test_several_lists_share_an_event_that_stops_them(
    strict: Database, table_name: str, all_threads_end: None
) -> None:
    strict.collections(table_name, [2] * 3_000, filling=500)
    stop = threading.Event()
    with list_keys(strict, table_name, stop=stop) as closed:
        next(closed)
    assert not stop.is_set()
    keys = list_keys(strict, table_name, stop=stop)
    listed = [next(keys)]
    stop.set()
    listed.extend(keys)
    assert 0 < len(listed) < 3_000
    assert not keys.summary.finished


def test_ctrl_c_in_the_loop_stops_the_threads(
    strict: Database, table_name: str, all_threads_end: None
) -> None:
    strict.collections(table_name, [2] * 500)

    def interrupted() -> None:
        for _ in list_keys(strict, table_name):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    gc.collect()


def test_a_read_budget_ends_the_list_with_an_error_after_the_keys_it_paid_for(
    strict: Database, stand_in: StandIn, table_name: str, all_threads_end: None
) -> None:
    strict.collections(table_name, [3] * 2_000, filling=2_000)
    refused = list_keys(strict, table_name, max_cost=0.00001)
    with pytest.raises(keyhop.errors.BudgetSpent, match="so nothing was started"):
        next(refused)
    keys = list_keys(strict, table_name, max_read_units=80)
    listed = []
    with pytest.raises(keyhop.errors.BudgetSpent):
        listed.extend(iter(keys))
    assert 0 < len(set(listed)) == keys.summary.keys == len(listed)
    assert keys.summary.dollars <= 0.00001
    assert not keys.summary.finished


def test_a_directory_is_resumed_and_yields_all_keys(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    expected = strict.collections(table_name, [3] * 600, filling=500)
    path = tmp_path / "keys"
    with pytest.raises(keyhop.errors.BudgetSpent):
        list_keys(
            strict, table_name, output=path, max_read_units=20, segments=16, format="json"
        ).run()
    with pytest.raises(keyhop.errors.RunConflict, match="unfinished run"):
        list_keys(strict, table_name, output=path)
    keys = list_keys(strict, table_name, output=path, resume=True)
    listed = list(keys)
    assert len(listed) == len(set(listed)) == 600
    assert set(listed) == expected
    assert keys.summary.finished
    scans = stand_in.requests["Scan"]
    finished = list_keys(strict, table_name, output=path, resume=True)
    assert finished.was_finished
    assert set(finished) == expected
    assert stand_in.requests["Scan"] == scans
    assert finished.summary.keys == 600


def test_keys_are_written_to_a_stream_in_a_format(strict: Database, table_name: str) -> None:
    expected = strict.collections(table_name, [1] * 20)
    stream = io.BytesIO()
    summary = list_keys(strict, table_name, format="json").write_to(stream)
    lines = stream.getvalue().decode().splitlines()
    assert {json.loads(line)["pk"] for line in lines} == expected
    assert (summary.keys, summary.finished) == (20, True)
    assert list_keys(strict, table_name).run().keys == 20


def test_progress_is_reported_until_the_end(strict: Database, table_name: str) -> None:
    strict.collections(table_name, [2] * 100)
    reports: list[keyhop.Progress] = []
    assert len(list(list_keys(strict, table_name, progress=reports.append))) == 100
    assert [report.is_over for report in reports].count(True) == 1
    assert reports[-1].is_over
    assert (reports[-1].keys, reports[-1].share) == (100, 1.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"limit": 0}, "limit must be a whole number above 0, not 0."),
        ({"max_cost": -1}, "max_cost must be a number above 0, not -1."),
        ({"method": "hop"}, 'method must be "auto", "skip", "scan" or "index", not \'hop\'.'),
        ({"resume": True}, "resume needs output: only a run in a directory can be resumed."),
        ({"separator": "-"}, "separator and metadata are for logical: give that too."),
        (
            {"method": "index", "verify": 0.5},
            "verify does not work with method index: verify the key index instead.",
        ),
        ({"format": "xml"}, "format must be one of text, json, typed-json, csv, not 'xml'."),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    strict: Database, table_name: str, arguments: dict[str, Any], sentence: str
) -> None:
    strict.create(table_name)
    with pytest.raises(keyhop.errors.CannotStart) as error:
        list_keys(strict, table_name, **arguments)
    assert str(error.value) == sentence


def test_an_invalid_table_is_refused(strict: Database, table_name: str) -> None:
    for value in (None, 7, "", strict.client):
        with pytest.raises(keyhop.errors.CannotStart, match="table must be the name or the ARN"):
            list_keys(strict, value)
    with pytest.raises(keyhop.errors.TableNotFound, match="There is no table"):
        list_keys(strict, table_name)
    with pytest.raises(keyhop.errors.CannotStart, match="leave session and endpoint_url out"):
        list_keys(strict, boto3s_table(strict, table_name))


def test_a_denied_request_is_an_error_of_the_iteration(
    strict: Database, stand_in: StandIn, table_name: str, all_threads_end: None
) -> None:
    strict.collections(table_name, [1] * 3)

    def denied(operation: str, request: Any) -> None:
        if operation == "Scan":
            raise failure("AccessDeniedException", "not authorized")

    stand_in.fault = denied
    with pytest.raises(keyhop.errors.NotPermitted, match="dynamodb:Scan") as error:
        list(list_keys(strict, table_name))
    assert isinstance(error.value, keyhop.KeyhopError)


def test_nothing_is_printed(
    strict: Database, table_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    strict.collections(table_name, [2] * 50)
    assert len(list(list_keys(strict, table_name))) == 50
    keyhop.estimate_keys(table_name, endpoint_url=strict.url)
    assert capfd.readouterr() == ("", "")


def test_a_fork_cannot_continue_a_list(strict: Database, table_name: str) -> None:
    strict.collections(table_name, [2] * 500)
    with list_keys(strict, table_name) as keys:
        next(keys)
        keys._batch = iter(())
        keys._process += 1  # as a fork sees it
        with pytest.raises(keyhop.errors.CannotStart, match="fork"):
            next(keys)
        keys._process -= 1


def test_an_estimate_has_a_cost_with_an_interval_for_each_method(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.collections(table_name, [20] * 300, filling=1_000)
    plan = keyhop.estimate_keys(table_name, endpoint_url=strict.url)
    assert plan.method == "skip"
    assert {"skip", "scan"} <= set(plan.methods)
    assert 0 < plan.keys.low <= plan.keys.mean <= plan.keys.high
    dollars = plan.dollars("skip")
    assert 0 < dollars.low <= dollars.mean <= dollars.high
    assert plan.methods["skip"].units.mean < plan.methods["scan"].units.mean
    assert plan.to_json()["methods"].keys() == plan.methods.keys()


def test_the_registry_of_the_key_index_is_that_of_the_stack(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = strict.collections(table_name, [2] * 5)
    buckets: list[str] = []

    def outputs(name: str, endpoint: Any) -> Any:
        return {"ResultsBucketName": f"bucket of {name}"}, None

    def registry(client: Any, bucket: str, table: Any) -> Any:
        buckets.append(bucket)
        return local_registry(table)

    monkeypatch.setattr("keyhop.public.deployment.find_outputs", outputs)
    monkeypatch.setattr("keyhop.public.tables.bucket_registry", registry)
    assert set(list_keys(strict, table_name, stack="Mine")) == expected
    keyhop.estimate_keys(table_name, endpoint_url=strict.url, stack="Ours")
    assert set(buckets) == {"bucket of Mine", "bucket of Ours"}
