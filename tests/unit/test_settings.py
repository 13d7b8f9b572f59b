"""Check the settings of the command: environment variables, and [tool.keyhop] in pyproject.toml."""

from collections.abc import Callable
from pathlib import Path

import pytest
from keyhop.cli.options import Options

from testing.databases import Database, keyhop

Run = Callable[..., Options]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a pyproject.toml above the working directory."""
    folder = tmp_path / "src"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = tmp_path / "pyproject.toml"
    path.write_text('[tool.keyhop]\nregion = "eu-west-1"\nstack = "Keys"\nmax-read-rate = 50\n')
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the options of a call of `keyhop keys T`."""

    def options_of(*arguments: str) -> Options:
        calls: list[Options] = []
        monkeypatch.setattr(
            "keyhop.cli.keys_actions.run", lambda options: calls.append(options) or 0
        )
        assert keyhop(*arguments).status == 0
        return calls[0]

    return options_of


def test_a_flag_overrides_a_variable_and_a_variable_the_file(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYHOP_STACK", "Mine")
    options = run("--region", "us-east-2", "keys", "T")
    assert (options.region, options.stack, options.max_read_rate) == ("us-east-2", "Mine", 50)
    assert options.profile is None
    assert options.settings == {"stack": "KEYHOP_STACK", "max_read_rate": str(project)}
    assert run("keys", "T", "--max-read-rate", "7").max_read_rate == 7


def test_a_setting_that_a_command_lacks_is_ignored(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhop.cli.shards_actions.run", lambda options: 0)
    assert keyhop("shards", "list", "T", "--metadata", "M").status == 0


def test_a_wrong_variable_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYHOP_MAX_READ_RATE", "fast")
    result = keyhop("keys", "T")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "KEYHOP_MAX_READ_RATE must be a number of units a second, 0.01 or more." in result.err


def test_answers_and_endpoints_cannot_be_settings(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("YES", "KEYS_YES", "ENDPOINT_URL", "ROLE_ARN"):
        monkeypatch.setenv(f"KEYHOP_{name}", "1")
    options = run("keys", "T")
    assert (options.yes, options.endpoint_url, options.role_arn) == (False, None, None)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "region = 5",
            'region in [tool.keyhop] of {} must be a text in quotes, such as region = "',
        ),
        (
            "regoin = 'x'",
            "regoin in [tool.keyhop] of {} is not a setting: the settings are stack, ",
        ),
        ("yes = true", "yes in [tool.keyhop] of {} is not a setting"),
        ("endpoint-url = 'x'", "endpoint-url in [tool.keyhop] of {} is not a setting"),
        ("role-arn = 'x'", "role-arn in [tool.keyhop] of {} is not a setting"),
        ("max-read-rate = 0", "max-read-rate in [tool.keyhop] of {} must be a number of units"),
        ("region = ", "{} is not valid TOML: "),
    ],
)
def test_a_wrong_setting_is_reported_with_its_file(project: Path, line: str, says: str) -> None:
    project.write_text(f"[tool.keyhop]\n{line}\n")
    result = keyhop("keys", "T")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert says.format(project) in result.err
    assert keyhop("keys", "--help").status == 0


def test_the_plan_names_the_file(project: Path, strict: Database, table_name: str) -> None:
    strict.collections(table_name, [1] * 5)
    project.write_text("[tool.keyhop]\nmax-read-rate = 5000\n")
    where = ("keys", table_name, "--endpoint-url", strict.url, "--dry-run")
    assert f"settings: max read rate from {project}\n" in keyhop(*where).err
    assert keyhop(*where, "--quiet").err == ""
