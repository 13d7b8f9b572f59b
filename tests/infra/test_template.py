"""Tests of the templates of `make template`, which have parameters for tables and code."""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from keyhop.checks import names_of

from infra import template
from infra.config import Config, Table
from infra.paths import ROOT
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import Deployed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make template` writes."""
    folder = tmp_path_factory.mktemp("template")
    template.write(folder)
    return folder


@pytest.fixture(params=template.TEMPLATES)
def generated(request: pytest.FixtureRequest, folder: Path) -> Deployed:
    """Each of the templates."""
    return read(folder, request.param)


def read(folder: Path, name: str = "keyhop-key-index") -> Deployed:
    return Deployed(json.loads((folder / f"{name}.template.json").read_text()))


def test_parameters_locate_all_code_assets(generated: Deployed, folder: Path):
    code = [function["Code"] for function in generated.properties_of("AWS::Lambda::Function")]
    code += [layer["Content"] for layer in generated.properties_of("AWS::Lambda::LayerVersion")]
    assert {str(asset["S3Bucket"]) for asset in code} == {str({"Fn::Sub": "${CodeBucket}"})}
    keys = {asset["S3Key"]["Fn::Sub"] for asset in code}
    assert keys == {f"${{CodePrefix}}{path.name}" for path in folder.glob("*.zip")}
    assert len(keys) == 2


def test_the_archive_has_all_files(folder: Path):
    with zipfile.ZipFile(folder.with_suffix(".zip")) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    assert names == {path.name for path in folder.iterdir()}


SETTINGS = {
    "maxCost": 2.5,
    "prices": {"reads": 0.1, "writes": 0.5},
    "resultsRetentionDays": 30,
    "logRetentionDays": 7,
    "logLevel": "ERROR",
    "architecture": "x86_64",
    "workerMemoryMb": 1024,
    "workerTimeoutSeconds": 300,
    "reservedConcurrency": 5,
}
WITH_KEY_INDEX = {"keeperConcurrency": 3, "verifyIndexSchedule": "rate(2 days)"}
TABLES = ["Orders", "Events", "Flights", "Audit"]


def parameters_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameter values for these settings as texts, which CloudFormation receives."""
    tables = {f"Table{number}": name for number, name in enumerate(TABLES, 1)}
    values = {
        f"{name[0].upper()}{name[1:]}": value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.items()
    }
    return tables | values


def with_parameters(template: Deployed, values: Mapping[str, str]) -> Deployed:
    """Return a template whose parameters have these values, or their defaults."""
    parameters = template.body["Parameters"]
    parameter_values = {
        name: str(parameter.get("Default", name)) for name, parameter in parameters.items()
    } | values
    conditions = template.body["Conditions"]

    def is_met(condition: Any) -> bool:
        if isinstance(condition, str):
            return is_met(conditions[condition])
        ((kind, parts),) = condition.items()
        if kind == "Fn::Equals":
            first, second = (
                parameter_values.get(part["Ref"], "") if isinstance(part, dict) else part
                for part in parts
            )
            return first == second
        assert kind == "Fn::Not"
        return not is_met(parts[0])

    def filled_in(value: Any) -> Any:
        if isinstance(value, list):
            return [filled_in(part) for part in value]
        if not isinstance(value, dict):
            return value
        if "Fn::If" in value and not value["Fn::If"][0].startswith("Monitoring"):
            condition, yes, no = value["Fn::If"]
            return filled_in(yes if is_met(condition) else no)
        if value.get("Ref") in parameter_values:
            return parameter_values[value["Ref"]]
        if list(value) == ["Fn::Sub"] and "${Table" in value["Fn::Sub"]:
            return re.sub(
                r"\$\{(Table.)\}", lambda match: parameter_values[match[1]], value["Fn::Sub"]
            )
        nothing = {"Ref": "AWS::NoValue"}
        filled = {name: filled_in(part) for name, part in value.items()}
        filled = {name: part for name, part in filled.items() if part != nothing}
        if "Fn::Join" in filled and all(isinstance(part, str) for part in filled["Fn::Join"][1]):
            return filled["Fn::Join"][0].join(filled["Fn::Join"][1])
        return filled

    return Deployed(filled_in(template.body))


def properties_of(template: Deployed) -> dict[str, Any]:
    """Return the properties of all resources that settings change, with numbers as texts."""
    kinds = ("AWS::Lambda::Function", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::Events::Rule")
    resources = template.body["Resources"].values()
    properties_by_name: dict[str, Any] = {}
    for resource in resources:
        if resource["Type"] not in kinds:
            continue
        properties = json.loads(json.dumps(resource["Properties"]))
        for field in ("Code", "Tags"):
            properties.pop(field, None)
        properties.setdefault("State", None)
        name = properties.get("FunctionName") or properties.get("LogGroupName")
        properties_by_name[str(name or properties.get("Description") or resource["Type"])] = (
            as_texts(properties)
        )
    return properties_by_name


def as_texts(value: Any) -> Any:
    """Return a value with texts in place of numbers, because CloudFormation accepts both."""
    if isinstance(value, list):
        return [as_texts(part) for part in value]
    if isinstance(value, dict):
        return {name: as_texts(part) for name, part in value.items()}
    return str(value) if isinstance(value, int) else value


@pytest.mark.parametrize("is_set", [True, False], ids=["with settings", "with defaults"])
@pytest.mark.parametrize("with_key_index", [False, True], ids=["keys", "key index"])
def test_a_parameter_has_the_effect_of_the_setting(
    folder: Path, with_key_index: bool, is_set: bool
):
    name = "keyhop-key-index" if with_key_index else "keyhop"
    settings = SETTINGS | (WITH_KEY_INDEX if with_key_index else {}) if is_set else {}
    schedule = "cron(0 3 ? * SUN *)"
    values = parameters_of(settings | {"runSchedule": schedule})
    entry = {"runSchedule": schedule, "keyIndex": with_key_index}
    by_cdk = deployed(
        stack_of({**settings, "tables": [{**entry, "table": table} for table in TABLES]})
    )
    filled_in = with_parameters(read(folder, name), values)
    expected, actual = properties_of(by_cdk), properties_of(filled_in)
    assert actual.keys() == expected.keys()
    for name in expected:
        assert actual[name] == expected[name], name


def test_a_schedule_starts_nothing_for_an_empty_table_parameter(folder: Path):
    values = {"Table1": "Orders", "Table3": "Events", "RunSchedule": "rate(7 days)"}

    def states(values: dict[str, str]) -> list[tuple[str, str]]:
        rules = with_parameters(read(folder), values).properties_of("AWS::Events::Rule")
        return sorted((rule["Description"], rule["State"]) for rule in rules)

    enabled = [description for description, state in states(values) if state == "ENABLED"]
    assert enabled == [
        "A verification of the key index of Events",
        "A verification of the key index of Orders",
        "Lists the keys of Events",
        "Lists the keys of Orders",
    ]
    never = {**values, "RunSchedule": "never", "VerifyIndexSchedule": "never"}
    assert {state for _, state in states(never)} == {"DISABLED"}


@pytest.mark.parametrize(
    ("parameter", "allowed", "refused"),
    [
        ("Table1", ["Orders", "a.b-c_d"], ["", "ab", "arn:aws:dynamodb:x:1:table/Orders"]),
        ("Table2", ["", "Orders"], ["ab"]),
        (
            "RunSchedule",
            ["never", "rate(1 day)", "cron(0 3 ? * SUN *)"],
            ["", "1 day", "rate(1 days)"],
        ),
        ("VerifyIndexSchedule", ["never", "rate(7 days)"], ["", "weekly"]),
        ("Prices", ["", '{"reads": 0.1, "writes": 0.5}', '{"reads":1,"writes":2}'], ["0.1", "{}"]),
        ("AlarmEmail", ["", "ops@example.com"], ["ops", "a@example.com, b@example.com"]),
        ("CodePrefix", ["", "keyhop/", "a/b/"], ["keyhop"]),
        ("CodeBucket", ["my-bucket"], ["", "My Bucket"]),
    ],
)
def test_a_parameter_refuses_what_the_setting_refuses(
    folder: Path, parameter: str, allowed: list[str], refused: list[str]
):
    pattern = re.compile(read(folder).body["Parameters"][parameter]["AllowedPattern"])
    assert [text for text in allowed if not pattern.fullmatch(text)] == []
    assert [text for text in refused if pattern.fullmatch(text)] == []


def test_the_console_shows_each_parameter_in_one_group(generated: Deployed):
    groups = generated.body["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    names = [name for group in groups for name in group["Parameters"]]
    assert sorted(names) == sorted(generated.body["Parameters"])


def test_each_setting_is_a_parameter_or_has_a_reason():
    """The reference page of the settings lists both."""
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    section = page.partition("## Settings of the CloudFormation templates")[2]
    assert section
    body = {"Parameters": {}, "Conditions": {}, "Resources": {}}
    template.add_options(body)
    option_names = {*body["Parameters"], *template.OF_KEY_INDEXES}
    parameters = {f"{name[0].lower()}{name[1:]}" for name in option_names}
    for setting in {*names_of(Config), *names_of(Table)[1:], "settings"}:
        assert f"`{setting}`" in section, setting
    for parameter in parameters:
        assert f"`{parameter[0].upper()}{parameter[1:]}`" in section, parameter


def test_alarms_are_sent_to_the_email_address(generated: Deployed):
    assert generated.body["Parameters"]["AlarmEmail"]["Default"] == ""
    subscription = generated.only("AWS::SNS::Subscription")
    assert subscription["Condition"] == "HasAlarmEmail"
    assert subscription["Properties"]["Endpoint"] == {"Ref": "AlarmEmail"}
    assert generated.body["Conditions"]["HasAlarmEmail"] == {
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


def test_a_template_needs_no_bootstrapped_account(generated: Deployed):
    assert "cdk-" not in json.dumps(generated.body["Parameters"])
    assert "Rules" not in generated.body
    assert "AWS::CDK::Metadata" not in str(generated.body)


def test_an_empty_table_parameter_repeats_the_first_table(generated: Deployed):
    def tables(values: dict[str, str]) -> list[str]:
        variables = with_parameters(generated, values).environment("PlanRun")
        return json.loads(variables["KEYHOP_TABLES"])

    orders = {"Table1": "Orders"}
    assert tables(orders) == ["Orders"] * template.MOST_TABLES
    assert tables({**orders, "Table3": "Events"}) == ["Orders", "Orders", "Events", "Orders"]


def test_the_template_that_only_lists_keys_may_not_write_to_tables(folder: Path):
    generated = (folder / "keyhop.template.json").read_text()
    assert "dynamodb:Scan" in generated
    for action in ("PutItem", "DeleteItem", "UpdateTable"):
        assert f"dynamodb:{action}" not in generated


def test_a_stack_can_be_updated_from_one_template_to_the_other(folder: Path):
    """Both templates use the same logical ids."""
    first, second = (read(folder, name).body["Resources"] for name in template.TEMPLATES)
    assert first.keys() <= second.keys()
    assert all(first[name]["Type"] == second[name]["Type"] for name in first)
