"""Tests of the settings file of a deployment and of the command line."""

import json
from pathlib import Path

import pytest

from infra.config import EXAMPLE, FILE, Config, ConfigError, settings_of
from infra.paths import ROOT


def write(folder: Path, name: str = FILE, **settings: object) -> None:
    (folder / name).write_text(json.dumps(settings))


def test_a_deployment_reads_its_settings_from_a_file(tmp_path: Path):
    write(tmp_path, tables=["Orders"], stackName="Mine")
    assert settings_of({}, tmp_path) == {"tables": ["Orders"], "stackName": "Mine"}


def test_the_command_line_overrides_the_file(tmp_path: Path):
    write(tmp_path, tables=["Orders"], logLevel="WARNING", alarmEmail="a@b.example")
    settings = settings_of({"logLevel": "ERROR", "alarmEmail": ""}, tmp_path)
    config = Config.from_context(settings)
    assert (config.log_level, config.alarm_email) == ("ERROR", None)
    assert [table.name for table in config.tables] == ["Orders"]


def test_settings_without_tables_are_refused(tmp_path: Path):
    """With a default, `cdk deploy` without -c would change a deployment to the default tables."""
    with pytest.raises(ConfigError, match=r"copy keyhop\.example\.json .*-c tables=Orders"):
        settings_of({"logLevel": "ERROR"}, tmp_path)
    assert settings_of({"tables": "Orders"}, tmp_path) == {"tables": "Orders"}


def test_a_second_deployment_may_use_another_file(tmp_path: Path):
    write(tmp_path, tables=["Orders"])
    write(tmp_path, "second.json", tables=["Events"], stackName="Second")
    assert settings_of({"settings": "second.json"}, tmp_path)["tables"] == ["Events"]
    with pytest.raises(ConfigError, match=r"no file third\.json"):
        settings_of({"settings": "third.json", "tables": "Orders"}, tmp_path)


def test_an_empty_file_name_reads_no_file(tmp_path: Path):
    """The laptop cloud and tests deploy in this way, independent of the user's deployment."""
    write(tmp_path, stackName="Mine")
    assert settings_of({"settings": "", "tables": "Orders"}, tmp_path) == {"tables": "Orders"}


@pytest.mark.parametrize("content", ["{", '["Orders"]', "3"])
def test_a_file_without_an_object_is_refused(tmp_path: Path, content: str):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ConfigError, match=FILE):
        settings_of({}, tmp_path)


def test_an_unknown_name_in_the_file_is_refused(tmp_path: Path):
    write(tmp_path, table=["Orders"], tables=["Orders"])
    with pytest.raises(ConfigError, match="table is not known"):
        Config.from_context(settings_of({}, tmp_path))


def test_the_example_is_valid_and_git_ignores_the_file_of_the_user():
    Config.from_context(json.loads((ROOT / EXAMPLE).read_text()))
    assert f"/{FILE}" in (ROOT / ".gitignore").read_text().splitlines()
    assert "context" not in json.loads((ROOT / "cdk.json").read_text()), "no default tables"
