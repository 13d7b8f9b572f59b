import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from handlers.settings import ManageSettings, PlanSettings

from infra import layer
from infra.functions import LAMBDAS
from testing.marks import prove
from tests.infra.conftest import FOREIGN_TABLE, LAPTOP, deployed, stack_of
from tests.infra.template import (
    BUCKET,
    FUNCTIONS,
    KEY_INDEX_FUNCTIONS,
    SHARDING_FUNCTIONS,
    Deployed,
)

ALL = (*FUNCTIONS, *KEY_INDEX_FUNCTIONS, *SHARDING_FUNCTIONS)
SETTINGS = {
    "PlanRun": "PlanSettings",
    "ScanSegments": "JobSettings",
    "FinishRun": "WorkerSettings",
    "VerifyRun": "WorkerSettings",
    "CleanUp": "CleanUpSettings",
}


IMPORTS = """
import ast, importlib, pathlib, sys

for name in sys.argv[1:]:
    module, function = name.rsplit(".", 1)
    handler = importlib.import_module(module)
    assert callable(getattr(handler, function))
    for found in ast.walk(ast.parse(pathlib.Path(handler.__file__).read_text())):
        if isinstance(found, ast.ImportFrom):  # also what is imported when it is called
            imported = importlib.import_module(found.module)
            assert all(hasattr(imported, alias.name) for alias in found.names)
    for loaded in [*sys.modules]:  # so that the next one finds nothing of ours imported
        if loaded.partition(".")[0] in ("handlers", "keyhop"):
            del sys.modules[loaded]
"""


@pytest.mark.prove
def test_every_handler_imports_from_what_is_uploaded_and_from_nothing_else(
    uploaded: Deployed, code: Path, packages: Path, tmp_path: Path
):
    """-S: without this Python's own packages. The command line's part is not uploaded.

    Each handler imports the library anew, so its bytecode is kept, outside of what is uploaded.
    """
    handlers = {
        one["Properties"]["Handler"] for one in uploaded.of_type("AWS::Lambda::Function").values()
    }
    assert len(handlers) == len(ALL) - 1, "two have the same: ScanSegments and WalkSegments"
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS, *sorted(handlers)],
        env={
            "PYTHONPATH": f"{code}:{packages / 'python'}",
            "PYTHONPYCACHEPREFIX": str(tmp_path),
            # Powertools asks for these two when it is imported outside of Lambda.
            "POWERTOOLS_SERVICE_NAME": "test",
            "POWERTOOLS_TRACE_DISABLED": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_without_settings_there_are_the_functions_of_a_run_and_the_guard_alone(plain: Deployed):
    assert sorted(plain.owners) == sorted([*FUNCTIONS, "ReleaseKeeper", "EnumerateKeys"])
    text = json.dumps(plain.body)
    for setting in ("KEY_INDEXES", "SHARDING", "EACH", "REKEY"):
        assert f"KEYHOP_{setting}" not in text


@pytest.mark.parametrize("name", ALL)
def test_a_handler_is_named_as_its_function(sharded: Deployed, name: str):
    called = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    handler = f"{called}.handler"
    if name in (*FUNCTIONS, "WalkSegments"):
        handler = f"job.{called.replace('walk', 'scan')}"
    if name in SHARDING_FUNCTIONS:
        handler = f"sharding.{called}"
    assert sharded.function(name)["Handler"] == f"handlers.{handler}"


@pytest.mark.parametrize("name", ALL)
def test_all_functions_are_alike_in_what_the_operator_sees(sharded: Deployed, name: str):
    function, other = sharded.function(name), sharded.function("PlanRun")
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["TracingConfig"] == {"Mode": "Active"}
    assert function["LoggingConfig"]["LogFormat"] == "JSON"
    assert (function["Layers"], function["Code"]) == (other["Layers"], other["Code"])
    group = sharded.body["Resources"][function["LoggingConfig"]["LogGroup"]]["Properties"]
    assert group["LogGroupName"] == f"/aws/lambda/Keyhop-{name}"
    assert group["RetentionInDays"] == 30


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_run_may_take_as_long_as_lambda_allows(template: Deployed, name: str):
    assert template.function(name)["Timeout"] == 900


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_environment_in_the_template_is_what_the_settings_class_needs(
    template: Deployed, name: str
):
    settings = getattr(importlib.import_module("handlers.settings"), SETTINGS[name])
    environment = template.environment(name)
    assert settings.from_env(environment).bucket == BUCKET


@pytest.mark.parametrize("name", ["PlanRun", "ScanSegments", "VerifyRun"])
def test_who_reads_tables_has_the_same_list_as_its_role(template: Deployed, name: str):
    environment = template.environment(name)
    assert json.loads(environment["KEYHOP_TABLES"]) == ["Flights", "Orders", FOREIGN_TABLE]


@pytest.mark.parametrize("name", ["PlanRun", "FinishRun", "CleanUp"])
def test_who_reckons_the_cost_knows_what_the_worker_is(template: Deployed, name: str):
    worker = template.function("ScanSegments")
    environment = template.environment(name)
    assert int(environment["KEYHOP_WORKER_MEMORY_MB"]) == worker["MemorySize"]
    assert [environment["KEYHOP_ARCHITECTURE"]] == worker["Architectures"]


def test_a_worker_has_one_whole_vcpu_and_disk_for_the_keys_of_an_index(template: Deployed):
    worker = template.function("ScanSegments")
    assert worker["MemorySize"] == 1769
    assert worker["EphemeralStorage"] == {"Size": 4096}
    finish = template.function("FinishRun")
    assert finish["EphemeralStorage"] == {"Size": 4096}, "it remembers the keys that it folds"
    assert worker["ReservedConcurrentExecutions"] == 200


def test_every_log_ends(template: Deployed):
    groups = template.of_type("AWS::Logs::LogGroup").values()
    assert len(groups) == len(FUNCTIONS) + 2, "of each, of ReleaseKeeper and of the machine"
    assert {group["Properties"]["RetentionInDays"] for group in groups} == {30}


@pytest.mark.parametrize("name", ALL)
def test_functions_find_dynamodb_by_themselves_but_on_a_laptop(
    sharded: Deployed, laptop: Deployed, name: str
):
    assert "AWS_ENDPOINT_URL_DYNAMODB" not in sharded.environment(name)
    assert laptop.environment(name)["AWS_ENDPOINT_URL_DYNAMODB"] == LAPTOP


def test_the_context_shapes_the_worker():
    shaped = deployed(
        stack_of(
            {
                "tables": "Flights",
                "workerMemoryMb": "3538",
                "workerTimeoutSeconds": "60",
                "architecture": "x86-64",
                "logLevel": "WARNING",
                "logRetentionDays": "7",
            }
        )
    )
    worker = shaped.function("ScanSegments")
    assert (worker["MemorySize"], worker["Timeout"]) == (3538, 60)
    assert "ReservedConcurrentExecutions" not in worker
    for name in FUNCTIONS:
        function = shaped.function(name)
        assert function["Architectures"] == ["x86_64"]
        assert function["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == "WARNING"
    groups = shaped.of_type("AWS::Logs::LogGroup").values()
    assert {group["Properties"]["RetentionInDays"] for group in groups} == {7}


@pytest.mark.parametrize("level", ["WARNING", prove("INFO"), prove("ERROR")])
def test_lambdas_own_filter_does_not_go_by_the_log_level(level: str):
    """It takes a metric for INFO, and would drop it. What our logger prints at each level:
    tests/unit/test_handlers.py."""
    shaped = deployed(stack_of({"tables": "Flights", "logLevel": level}))
    for name in FUNCTIONS:
        function = shaped.function(name)
        assert function["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == level
        assert function["LoggingConfig"]["LogFormat"] == "JSON"
        assert function["LoggingConfig"]["ApplicationLogLevel"] == "INFO"


def test_every_function_logs_by_that_logger():
    for path in (LAMBDAS / "handlers").glob("*.py"):
        assert path.name == "telemetry.py" or "Logger(" not in path.read_text(), path.name


def test_the_code_is_what_functions_need_and_no_more(code: Path):
    shipped = {path.relative_to(code).as_posix() for path in code.rglob("*")}
    assert {path.split("/")[0] for path in shipped} == {"handlers", "keyhop"}
    assert "keyhop/cli" not in shipped
    assert not [path for path in shipped if "__pycache__" in path or path.endswith(".pyc")]
    kept = {path.relative_to(LAMBDAS).as_posix() for path in LAMBDAS.glob("keyhop/enumerate/*.py")}
    assert kept <= shipped


def test_the_layer_that_is_uploaded_is_the_one_in_the_cache(packages: Path):
    uploaded, cached = (
        sorted(path.relative_to(folder) for path in folder.rglob("*.py"))
        for folder in (packages, layer.built())
    )
    assert uploaded == cached


def test_no_layer_is_built_where_nothing_is_deployed(monkeypatch: pytest.MonkeyPatch):
    """`cdk destroy` and `cdk list` need no package index."""

    def never(*_: object) -> Path:
        raise AssertionError("the layer was built")

    monkeypatch.setattr(layer, "built", never)
    stack_of({"tables": "Flights", "stackName": "Unbuilt"})


def test_the_functions_know_what_may_be_spent_and_at_which_prices():
    prices = {"reads": 0.2, "writes": 1}
    tables = [{"table": "Orders", "keyIndex": True}]
    stack = deployed(stack_of({"tables": tables, "maxCost": 25, "prices": prices}))
    for name, settings in (("PlanRun", PlanSettings), ("ManageIndex", ManageSettings)):
        environment = stack.function(name)["Environment"]["Variables"]
        texts = {name: str(value) for name, value in environment.items()}
        found = settings.from_env(texts)
        assert found.max_cost == 25.0
        assert json.loads(found.prices) == prices
    for name in FUNCTIONS:
        environment = stack.function(name)["Environment"]["Variables"]
        assert json.loads(environment["KEYHOP_PRICES"]) == prices
    shown = json.dumps(stack.dashboard)
    assert "RUNNING_SUM(units) * 0.0000002000" in shown
    assert "dollars of reads (on demand, at your own prices)" in shown
