"""Check the input of an execution: accepted fields, and the messages for wrong ones."""

import pytest
from keyhop.checks import names_of
from keyhop.dynamodb.endpoint import table_region
from keyhop.errors import InvalidInput
from keyhop.jobs.request import RUN_ID, Request, allowed
from keyhop.key_index.request import WalkInput
from keyhop.keys.request import KeysInput

ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"


def test_the_table_is_enough() -> None:
    job_input = {"table": "Orders"}
    assert KeysInput.parse(job_input) == Request("Orders", "keys", job_input=job_input)


def test_every_field_reaches_the_request() -> None:
    job_input = {
        "table": ARN,
        "index": "by-day",
        "method": "scan",
        "segments": 64,
        "maxConcurrency": 4,
        "maxReadRate": 500,
        "maxReadUnits": 1000.5,
        "maxCost": 2.5,
        "fileFormat": "csv",
        "dryRun": False,
        "logical": False,
        "resume": "run-1",
    }
    assert set(job_input) == set(names_of(KeysInput)) - {
        *("separator", "metadata", "accept", "verifyShare", "scheduled")
    }
    assert KeysInput.parse(job_input) == Request(
        ARN,
        "keys",
        index="by-day",
        method="scan",
        segments=64,
        max_concurrency=4,
        max_read_rate=500,
        max_read_units=1000.5,
        max_cost=2.5,
        format="csv",
        resume="run-1",
        job_input=job_input,
    )
    checked = {"table": "Orders", "verifyShare": 0.01}
    assert KeysInput.parse(checked) == Request(
        "Orders", "keys", verify_share=0.01, job_input=checked
    )
    folded = {"table": "Orders", "logical": True, "separator": "-", "metadata": "Shards"}
    fold = {"separator": "-", "metadata": "Shards"}
    assert KeysInput.parse(folded) == Request(
        "Orders", "keys", {"fold": fold}, {"logical": True, **fold}, job_input=folded
    )
    accepted = {"table": "Orders", "method": "index", "accept": ["stale-index"]}
    assert KeysInput.parse(accepted) == Request(
        "Orders", "keys", {"accept": ["stale-index"]}, method="index", job_input=accepted
    )


def test_enumerate_keys_refuses_a_walk() -> None:
    """Only WalkKeyIndexes writes to a table, and nobody can start it by mistake."""
    walk = {"kind": "build", "repair": True, "grace_seconds": 10.0, "max_write_rate": None}
    with pytest.raises(InvalidInput, match="unknown: 'walk'"):
        KeysInput.parse({"table": "Orders", "walk": walk})
    job_input = {"table": "Orders", "walk": walk, "lease": "arn:e"}
    assert WalkInput.parse(job_input).options == {"walk": walk, "lease": "arn:e"}


@pytest.mark.parametrize(
    ("job_input", "message"),
    [
        ([], "must be a JSON object"),
        ("Orders", "must be a JSON object"),
        (None, "must be a JSON object"),
        ({}, "table is missing"),
        ({"table": "Orders", "segmets": 4}, "unknown: 'segmets', did you mean segments"),
        ({"table": "Orders", "Table": "Orders"}, "unknown: 'Table'"),
        ({"table": ""}, "table must be the name or the ARN"),
        ({"table": "a b c"}, "table must be"),
        ({"table": "../../x"}, "table must be"),
        ({"table": "Orders\n"}, "table must be"),
        ({"table": ["Orders"]}, "not an array"),
        ({"table": {"name": "Orders"}}, "not an object"),
        ({"table": 5}, "not 5"),
        ({"table": None}, "not null"),
        ({"table": "Orders", "index": None}, "index must be the name of an index, not null"),
        ({"table": "Orders", "method": "hop"}, '"auto", "skip", "scan" or "index", not \'hop\''),
        ({"table": "Orders", "method": ["skip"]}, "method must be"),
        ({"table": "Orders", "segments": 0}, "from 1 to 1,000,000, not 0"),
        ({"table": "Orders", "segments": 1_000_001}, "segments must be"),
        ({"table": "Orders", "segments": 2.5}, "segments must be"),
        ({"table": "Orders", "segments": "16"}, "segments must be a whole number"),
        ({"table": "Orders", "segments": True}, "not true"),
        ({"table": "Orders", "segments": float("nan")}, "segments must be"),
        ({"table": "Orders", "maxConcurrency": 0}, "maxConcurrency must be"),
        ({"table": "Orders", "maxConcurrency": 10_001}, "maxConcurrency must be"),
        ({"table": "Orders", "maxReadRate": 0}, "maxReadRate must be"),
        ({"table": "Orders", "maxReadRate": -1}, "maxReadRate must be"),
        ({"table": "Orders", "maxReadRate": "fast"}, "maxReadRate must be"),
        ({"table": "Orders", "maxReadRate": float("inf")}, "maxReadRate must be"),
        ({"table": "Orders", "maxReadUnits": 0.4}, "maxReadUnits must be"),
        ({"table": "Orders", "fileFormat": "text"}, '"jsonl" or "csv"'),
        ({"table": "Orders", "dryRun": "yes"}, "dryRun must be true or false"),
        ({"table": "Orders", "dryRun": 1}, "dryRun must be true or false"),
        ({"table": "Orders", "verifyShare": 0}, "verifyShare must be a number above 0"),
        ({"table": "Orders", "verifyShare": 1.1}, "verifyShare must be"),
        ({"table": "Orders", "resume": "a/b"}, "resume must be the id of a run"),
        ({"table": "Orders", "resume": ".."}, "resume must be"),
        ({"table": "Orders", "resume": ""}, "resume must be"),
        ({"table": "Orders", "resume": "r", "dryRun": True}, "cannot be combined"),
    ],
)
def test_a_wrong_value_is_reported_with_its_field(job_input: object, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        KeysInput.parse(job_input)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as error:
        KeysInput.parse({"tabel": "Orders", "segments": -1, "fileFormat": 7})
    for name in ("tabel", "table is missing", "segments", "fileFormat"):
        assert name in str(error.value)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidInput) as error:
        KeysInput.parse({"table": "x" * 100_000, "y" * 100_000: 1})
    assert len(str(error.value)) < 1_000


def test_only_tables_of_the_deployment_are_allowed() -> None:
    assert allowed("Orders", ["Orders"]) == "Orders"
    assert allowed("Orders", [ARN]) == ARN
    assert allowed(ARN, [ARN]) == ARN
    assert allowed(ARN, ["Orders"]) == ARN
    for table in ("orders", "Order", "Customers", ARN.replace("Orders", "Customers")):
        with pytest.raises(InvalidInput, match="not one of the tables of this deployment"):
            allowed(table, ["Orders"])
    with pytest.raises(InvalidInput, match="not one of"):
        allowed(ARN.replace("eu-west-1", "us-east-1"), [ARN])
    with pytest.raises(InvalidInput, match="ambiguous"):
        allowed("Orders", [ARN, ARN.replace("eu-west-1", "us-east-1")])


def test_a_table_by_arn_is_read_in_its_region() -> None:
    assert table_region(ARN) == "eu-west-1"
    assert table_region("Orders") is None


@pytest.mark.parametrize("name", ["a", "run_1-2.3", "läuft", "x" * 80])
def test_names_of_executions_are_names_of_runs(name: str) -> None:
    assert RUN_ID.fullmatch(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a\x00", "x" * 81, "{}", "a:b"])
def test_an_impossible_name_of_an_execution_is_not_a_run(name: str) -> None:
    assert not RUN_ID.fullmatch(name)
