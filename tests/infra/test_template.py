"""The templates of `make template`: parameters for tables and code, nothing of the CDK's own."""

import json
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from infra import template
from infra.config import Config
from tests.infra.template import Deployed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make template` writes it."""
    folder = tmp_path_factory.mktemp("template")
    template.write(folder)
    return folder


@pytest.fixture(params=template.TEMPLATES)
def written(request: pytest.FixtureRequest, folder: Path) -> Deployed:
    """One of the templates."""
    return Deployed(json.loads((folder / f"{request.param}.template.json").read_text()))


def test_all_code_lies_beside_it_and_is_asked_for_by_parameters(written: Deployed, folder: Path):
    code = [
        one["Properties"][field]
        for kind, field in (
            ("AWS::Lambda::Function", "Code"),
            ("AWS::Lambda::LayerVersion", "Content"),
        )
        for one in written.of_type(kind).values()
    ]
    assert {str(one["S3Bucket"]) for one in code} == {str({"Fn::Sub": "${CodeBucket}"})}
    keys = {one["S3Key"]["Fn::Sub"] for one in code}
    assert keys == {f"${{CodePrefix}}{path.name}" for path in folder.glob("*.zip")}
    assert len(keys) == 2


def test_one_file_has_all_of_it(folder: Path):
    with zipfile.ZipFile(folder.with_suffix(".zip")) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    assert names == {path.name for path in folder.iterdir()}


def test_options_are_parameters_with_the_defaults_of_the_settings(written: Deployed):
    parameters = written.body["Parameters"]
    assert parameters["MaxCost"]["Default"] == Config.max_cost
    assert parameters["LogRetentionDays"]["Default"] == Config.log_retention_days
    functions = written.of_type("AWS::Lambda::Function").values()
    variables = [one["Properties"].get("Environment", {}).get("Variables", {}) for one in functions]
    limits = [one["KEYHOP_MAX_COST"] for one in variables if "KEYHOP_MAX_COST" in one]
    groups = written.of_type("AWS::Logs::LogGroup").values()
    retentions = [one["Properties"]["RetentionInDays"] for one in groups]
    assert limits == [{"Ref": "MaxCost"}] * len(limits) != []
    assert retentions == [{"Ref": "LogRetentionDays"}] * len(retentions) != []


def test_alarms_are_sent_by_e_mail_if_there_is_an_address(written: Deployed):
    assert written.body["Parameters"]["AlarmEmail"]["Default"] == ""
    (subscription,) = written.of_type("AWS::SNS::Subscription").values()
    assert subscription["Condition"] == "HasAlarmEmail"
    assert subscription["Properties"]["Endpoint"] == {"Ref": "AlarmEmail"}
    assert written.body["Conditions"]["HasAlarmEmail"] == {
        "Fn::Not": [{"Fn::Equals": [{"Ref": "AlarmEmail"}, ""]}]
    }


def test_the_link_to_the_console_names_the_uploaded_template_and_the_bucket():
    parts = urlsplit(template.launch_link("theirs", "eu-west-1"))
    assert parts.netloc == "eu-west-1.console.aws.amazon.com"
    page, _, query = parts.fragment.partition("?")
    assert page == "/stacks/quickcreate"
    assert parse_qs(query) == {
        "templateURL": ["https://theirs.s3.eu-west-1.amazonaws.com/keyhop/keyhop.template.json"],
        "stackName": ["Keyhop"],
        "param_CodeBucket": ["theirs"],
    }


def test_it_needs_no_bootstrapped_account(written: Deployed):
    assert "cdk-" not in json.dumps(written.body["Parameters"])
    assert "Rules" not in written.body
    assert "AWS::CDK::Metadata" not in str(written.body)


def chosen(value: Any, given: dict[str, str]) -> Any:
    """A value, for some tables that are given."""
    if isinstance(value, dict):
        if "Fn::If" in value:
            condition, yes, no = value["Fn::If"]
            return chosen(yes if condition.removeprefix("Has") in given else no, given)
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return separator.join(chosen(part, given) for part in parts)
        if value.get("Ref") in given:
            return given[value["Ref"]]
        return value.get("Ref", "")
    return value


def test_tables_that_are_not_given_are_the_first_once_more(written: Deployed):
    (planner,) = (
        one["Properties"]
        for one in written.of_type("AWS::Lambda::Function").values()
        if one["Properties"].get("FunctionName") == "Keyhop-PlanRun"
    )
    tables = planner["Environment"]["Variables"]["KEYHOP_TABLES"]
    orders = {"Table1": "Orders"}
    assert json.loads(chosen(tables, orders)) == ["Orders"] * template.MOST_TABLES
    both = json.loads(chosen(tables, {**orders, "Table3": "Events"}))
    assert both == ["Orders", "Orders", "Events", "Orders"]


def test_an_index_is_verified_once(folder: Path):
    written = Deployed(json.loads((folder / "keyhop-key-index.template.json").read_text()))
    rules = [
        one["Properties"]
        for name, one in written.of_type("AWS::Events::Rule").items()
        if "Verification" in name
    ]
    states = [chosen(one["State"], {"Table1": "Orders"}) for one in rules]
    assert sorted(states) == ["DISABLED"] * (template.MOST_TABLES - 1) + ["ENABLED"]


def test_who_lists_keys_only_may_write_no_table(folder: Path):
    written = (folder / "keyhop.template.json").read_text()
    assert "dynamodb:Scan" in written
    for action in ("PutItem", "DeleteItem", "UpdateTable"):
        assert f"dynamodb:{action}" not in written


def test_a_stack_of_the_one_can_be_updated_to_the_other(folder: Path):
    """What both have is the same resource."""
    first, second = (
        json.loads((folder / f"{name}.template.json").read_text())["Resources"]
        for name in template.TEMPLATES
    )
    assert first.keys() <= second.keys()
    assert all(first[name]["Type"] == second[name]["Type"] for name in first)
