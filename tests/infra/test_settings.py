"""Where a deployment's settings come from."""

import json
from pathlib import Path

import pytest

from infra.config import EXAMPLE, FILE, Config, ConfigError, settings_of
from infra.paths import ROOT


def write(folder: Path, name: str = FILE, **settings: object) -> None:
    (folder / name).write_text(json.dumps(settings))


def test_a_deployment_has_its_settings_in_a_file(tmp_path: Path):
    write(tmp_path, tables=["Orders"], stackName="Mine")
    assert settings_of({}, tmp_path) == {"tables": ["Orders"], "stackName": "Mine"}


def test_the_command_line_wins(tmp_path: Path):
    write(tmp_path, tables=["Orders"], logLevel="WARNING", alarmEmail="a@b.example")
    given = settings_of({"logLevel": "ERROR", "alarmEmail": ""}, tmp_path)
    config = Config.from_context(given)
    assert (config.log_level, config.alarm_email) == ("ERROR", None)
    assert [table.name for table in config.tables] == ["Orders"]


def test_without_tables_nothing_is_deployed(tmp_path: Path):
    """No default: `cdk deploy` without -c would turn a deployment to the default's tables."""
    with pytest.raises(ConfigError, match=r"copy keyhop\.example\.json .*-c tables=Orders"):
        settings_of({"logLevel": "ERROR"}, tmp_path)
    assert settings_of({"tables": "Orders"}, tmp_path) == {"tables": "Orders"}


def test_another_file_may_be_named_for_a_second_deployment(tmp_path: Path):
    write(tmp_path, tables=["Orders"])
    write(tmp_path, "second.json", tables=["Events"], stackName="Second")
    assert settings_of({"settings": "second.json"}, tmp_path)["tables"] == ["Events"]
    with pytest.raises(ConfigError, match=r"no file third\.json"):
        settings_of({"settings": "third.json", "tables": "Orders"}, tmp_path)


def test_no_file_is_read_where_none_is_named(tmp_path: Path):
    """As the laptop cloud and tests deploy, whatever the user's own deployment is like."""
    write(tmp_path, stackName="Mine")
    assert settings_of({"settings": "", "tables": "Orders"}, tmp_path) == {"tables": "Orders"}


@pytest.mark.parametrize("content", ["{", '["Orders"]', "3"])
def test_a_file_that_is_no_object_is_one_sentence(tmp_path: Path, content: str):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ConfigError, match=FILE):
        settings_of({}, tmp_path)


def test_a_wrong_name_in_the_file_is_refused(tmp_path: Path):
    write(tmp_path, table=["Orders"], tables=["Orders"])
    with pytest.raises(ConfigError, match="table is not known"):
        Config.from_context(settings_of({}, tmp_path))


def test_the_example_is_right_and_the_users_file_is_no_part_of_the_project():
    Config.from_context(json.loads((ROOT / EXAMPLE).read_text()))
    assert f"/{FILE}" in (ROOT / ".gitignore").read_text().splitlines()
    assert "context" not in json.loads((ROOT / "cdk.json").read_text()), "no default tables"
