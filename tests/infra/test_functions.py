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
    for node in ast.walk(ast.parse(pathlib.Path(handler.__file__).read_text())):
        if isinstance(node, ast.ImportFrom):  # including imports inside functions
            imported = importlib.import_module(node.module)
            assert all(hasattr(imported, alias.name) for alias in node.names)
    for loaded in [*sys.modules]:  # The next handler must import Keyhop again.
        if loaded.partition(".")[0] in ("handlers", "keyhop"):
            del sys.modules[loaded]
"""


@pytest.mark.prove
def test_every_handler_imports_only_uploaded_modules(
    uploaded: Deployed, code: Path, packages: Path, tmp_path: Path
):
    """-S hides the installed packages. The command line is not uploaded.

    Each handler imports the library again, so its bytecode is cached outside the uploaded folder.
    """
    handlers = {function["Handler"] for function in uploaded.properties_of("AWS::Lambda::Function")}
    assert len(handlers) == len(ALL) - 1, "ScanSegments and WalkSegments share a handler"
    process = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS, *sorted(handlers)],
        env={
            "PYTHONPATH": f"{code}:{packages / 'python'}",
            "PYTHONPYCACHEPREFIX": str(tmp_path),
            # Powertools needs these two when it is imported outside Lambda.
            "POWERTOOLS_SERVICE_NAME": "test",
            "POWERTOOLS_TRACE_DISABLED": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


def test_without_settings_only_the_functions_of_a_run_and_the_guard_exist(plain: Deployed):
    assert sorted(plain.owners) == sorted([*FUNCTIONS, "ReleaseKeeper", "EnumerateKeys"])
    text = json.dumps(plain.body)
    for setting in ("KEY_INDEXES", "SHARDING", "EACH", "REKEY"):
        assert f"KEYHOP_{setting}" not in text


@pytest.mark.parametrize("name", ALL)
def test_a_handler_has_the_name_of_its_function(sharded: Deployed, name: str):
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    handler = f"{module}.handler"
    if name in (*FUNCTIONS, "WalkSegments"):
        handler = f"job.{module.replace('walk', 'scan')}"
    if name in SHARDING_FUNCTIONS:
        handler = f"sharding.{module}"
    assert sharded.function(name)["Handler"] == f"handlers.{handler}"


@pytest.mark.parametrize("name", ALL)
def test_all_functions_have_the_same_operational_settings(sharded: Deployed, name: str):
    function, planner = sharded.function(name), sharded.function("PlanRun")
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["TracingConfig"] == {"Mode": "Active"}
    assert function["LoggingConfig"]["LogFormat"] == "JSON"
    assert (function["Layers"], function["Code"]) == (planner["Layers"], planner["Code"])
    group = sharded.body["Resources"][function["LoggingConfig"]["LogGroup"]]["Properties"]
    assert group["LogGroupName"] == f"/aws/lambda/Keyhop-{name}"
    assert group["RetentionInDays"] == 30


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_run_has_the_longest_timeout_of_lambda(template: Deployed, name: str):
    assert template.function(name)["Timeout"] == 900


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_template_sets_the_variables_of_the_settings_class(template: Deployed, name: str):
    settings = getattr(importlib.import_module("handlers.settings"), SETTINGS[name])
    environment = template.environment(name)
    assert settings.from_env(environment).bucket == BUCKET


@pytest.mark.parametrize("name", ["PlanRun", "ScanSegments", "VerifyRun"])
def test_a_function_that_reads_tables_has_the_list_of_its_role(template: Deployed, name: str):
    environment = template.environment(name)
    assert json.loads(environment["KEYHOP_TABLES"]) == ["Flights", "Orders", FOREIGN_TABLE]


@pytest.mark.parametrize("name", ["PlanRun", "FinishRun", "CleanUp"])
def test_a_function_that_estimates_the_cost_knows_the_size_of_a_worker(
    template: Deployed, name: str
):
    worker = template.function("ScanSegments")
    environment = template.environment(name)
    assert int(environment["KEYHOP_WORKER_MEMORY_MB"]) == worker["MemorySize"]
    assert [environment["KEYHOP_ARCHITECTURE"]] == worker["Architectures"]


def test_a_worker_has_one_vcpu_and_disk_space_for_the_keys_of_an_index(template: Deployed):
    worker = template.function("ScanSegments")
    assert worker["MemorySize"] == 1769
    assert worker["EphemeralStorage"] == {"Size": 4096}
    finish = template.function("FinishRun")
    assert finish["EphemeralStorage"] == {"Size": 4096}, "it stores the keys that it folds"
    assert worker["ReservedConcurrentExecutions"] == 200


def test_every_log_group_expires(template: Deployed):
    groups = template.properties_of("AWS::Logs::LogGroup")
    assert len(groups) == len(FUNCTIONS) + 2, "one per function, ReleaseKeeper and the machine"
    assert {group["RetentionInDays"] for group in groups} == {30}


@pytest.mark.parametrize("name", ALL)
def test_functions_have_an_endpoint_of_dynamodb_only_on_a_laptop(
    sharded: Deployed, laptop: Deployed, name: str
):
    assert "AWS_ENDPOINT_URL_DYNAMODB" not in sharded.environment(name)
    assert laptop.environment(name)["AWS_ENDPOINT_URL_DYNAMODB"] == LAPTOP


def test_the_context_sets_the_size_of_the_worker():
    template = deployed(
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
    worker = template.function("ScanSegments")
    assert (worker["MemorySize"], worker["Timeout"]) == (3538, 60)
    assert "ReservedConcurrentExecutions" not in worker
    for name in FUNCTIONS:
        function = template.function(name)
        assert function["Architectures"] == ["x86_64"]
        assert function["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == "WARNING"
    groups = template.properties_of("AWS::Logs::LogGroup")
    assert {group["RetentionInDays"] for group in groups} == {7}


@pytest.mark.parametrize("level", ["WARNING", prove("INFO"), prove("ERROR")])
def test_the_log_filter_of_lambda_ignores_the_log_level(level: str):
    """Lambda treats a metric as INFO, and would drop it. tests/unit/test_handlers.py tests the
    output of Keyhop's logger at each level."""
    template = deployed(stack_of({"tables": "Flights", "logLevel": level}))
    for name in FUNCTIONS:
        function = template.function(name)
        assert function["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == level
        assert function["LoggingConfig"]["LogFormat"] == "JSON"
        assert function["LoggingConfig"]["ApplicationLogLevel"] == "INFO"


def test_every_function_uses_the_logger_of_telemetry():
    for path in (LAMBDAS / "handlers").glob("*.py"):
        assert path.name == "telemetry.py" or "Logger(" not in path.read_text(), path.name


def test_the_code_asset_has_only_what_functions_need(code: Path):
    shipped = {path.relative_to(code).as_posix() for path in code.rglob("*")}
    assert {path.split("/")[0] for path in shipped} == {"handlers", "keyhop"}
    assert "keyhop/cli" not in shipped
    assert not [path for path in shipped if "__pycache__" in path or path.endswith(".pyc")]
    needed = {
        path.relative_to(LAMBDAS).as_posix() for path in LAMBDAS.glob("keyhop/enumerate/*.py")
    }
    assert needed <= shipped


def test_the_uploaded_layer_is_the_one_in_the_cache(packages: Path):
    uploaded, cached = (
        sorted(path.relative_to(folder) for path in folder.rglob("*.py"))
        for folder in (packages, layer.built())
    )
    assert uploaded == cached


def test_no_layer_is_built_if_nothing_is_deployed(monkeypatch: pytest.MonkeyPatch):
    """`cdk destroy` and `cdk list` must work without a package index."""

    def never(*_: object) -> Path:
        raise AssertionError("the layer was built")

    monkeypatch.setattr(layer, "built", never)
    stack_of({"tables": "Flights", "stackName": "Unbuilt"})


def test_the_functions_know_the_maximum_cost_and_the_prices():
    prices = {"reads": 0.2, "writes": 1}
    tables = [{"table": "Orders", "keyIndex": True}]
    stack = deployed(stack_of({"tables": tables, "maxCost": 25, "prices": prices}))
    for name, settings in (("PlanRun", PlanSettings), ("ManageIndex", ManageSettings)):
        environment = stack.environment(name)
        parsed = settings.from_env({field: str(value) for field, value in environment.items()})
        assert parsed.max_cost == 25.0
        assert json.loads(parsed.prices) == prices
    for name in FUNCTIONS:
        assert json.loads(stack.environment(name)["KEYHOP_PRICES"]) == prices
    dashboard = json.dumps(stack.dashboard)
    assert "RUNNING_SUM(units) * 0.0000002000" in dashboard
    assert "dollars of reads (on demand, at your own prices)" in dashboard
