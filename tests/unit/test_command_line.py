"""The command line as it is parsed: what options mean, what is refused, what help and TAB show."""

import os
import subprocess
import sys
from typing import Any

import click
import pytest
from click.testing import CliRunner
from keyhop.cli.main import COMPLETION, command, main
from keyhop.cli.options import Options

from testing.databases import keyhop


def commands(group: click.Command, *names: str) -> Any:
    """Each command that does something, with its names."""
    children = getattr(group, "commands", {})
    if not children:
        yield names, group
    for name, child in children.items():
        yield from commands(child, *names, name)


COMMANDS = dict(commands(command))


def parsed(*arguments: str) -> Options:
    """The options of `keyhop keys T` and these."""
    return options_of(("keys",), "T", *arguments)


def options_of(names: tuple[str, ...], *arguments: str) -> Options:
    """The options of a command."""
    parent = command.make_context("keyhop", [names[0]])
    return Options(**COMMANDS[names].make_context(names[-1], [*arguments], parent).params)


def test_a_value_may_look_like_an_option_after_an_equals_sign_only() -> None:
    """A forgotten value would otherwise name a directory `--resume`, and resume nothing."""
    assert parsed("--separator=--", "--output=-x").separator == "--"
    assert parsed("--separator", "-").separator == "-"
    for wrong in (
        ("--output", "--resume"),
        ("--output", "-h"),
        ("--separator", "--"),
        ("--region",),
    ):
        with pytest.raises(click.BadOptionUsage, match="requires an argument"):
            parsed(*wrong)


def test_numbers_may_be_negative_and_are_refused_as_numbers() -> None:
    with pytest.raises(click.BadParameter, match=r"'-1\.5' is not a number above 0"):
        parsed("--max-read-units", "-1.5")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_what_is_no_number_is_no_rate_no_share_and_no_whole_number(text: str) -> None:
    for name in ("--max-read-rate", "--verify", "--segments", "--give-up-after"):
        with pytest.raises(click.BadParameter, match=f"'{text}' is not a"):
            parsed(name, text)


def test_zero_seconds_of_grace_are_possible() -> None:
    assert options_of(("index", "audit"), "T", "--grace", "0").grace == 0
    with pytest.raises(click.BadParameter, match="'nan' is not a number of seconds"):
        options_of(("index", "audit"), "T", "--grace", "nan")


def test_threads_are_also_given_by_their_former_name() -> None:
    assert [parsed().threads, parsed("--threads", "3").threads] == [None, 3]
    assert parsed("--workers", "3").threads == 3
    assert parsed("--threads", "2", "--workers", "3").threads == 3
    assert "--workers" not in keyhop("keys", "--help").out.decode()


def test_an_empty_value_is_a_value() -> None:
    assert (parsed("--report", "").report, parsed().report) == ("", None)


@pytest.mark.parametrize("names", COMMANDS)
def test_an_option_has_one_help_and_one_meaning_wherever_it_is(names: tuple[str, ...]) -> None:
    """But those which only share a name: what they are of differs."""
    own = {"--plan", "--output", "--resume", "--separator", "--metadata"}
    for option in COMMANDS[names].params:
        for other in (one for each in COMMANDS.values() for one in each.params):
            if option.opts == other.opts and not own & set(option.opts):
                assert option.to_info_dict() == other.to_info_dict()


@pytest.mark.parametrize("names", COMMANDS)
def test_every_help_has_sections_and_says_what_arguments_are(names: tuple[str, ...]) -> None:
    text = CliRunner().invoke(command, [*names, "--help"]).output
    for said in ("Where the table is:", "--endpoint-url URL", "TABLE  name or ARN", "-h, --help"):
        assert said in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("index", "bild"), "keyhop index: No such command 'bild'. Did you mean 'build'?"),
        (("keys", "T", "--endpoint", "x"), "Did you mean one of: '--endpoint-url'"),
        (("keys", "T", "--quiet=yes"), "keyhop keys: Option '--quiet' does not take a value"),
        (("index", "audit"), "keyhop index audit: Missing argument 'TABLE'"),
        (("index", "reconcile", "T"), "keyhop index reconcile: Missing option '--queue'"),
    ],
)
def test_a_wrong_input_is_told_with_the_command_and_a_suggestion(
    arguments: tuple[str, ...], says: str
) -> None:
    result = keyhop(*arguments)
    name = says.partition(":")[0] if says.startswith("keyhop") else "keyhop keys"
    assert result.status == 2
    assert says in result.err
    assert result.err.endswith(f" (see {name} --help)\n")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("keyhop ", {"keys", "index", "shards"}),
        ("keyhop index re", {"reconcile", "remove"}),
        ("keyhop keys T --max", {"--max-read-rate", "--max-read-units"}),
        ("keyhop keys T --method s", {"skip", "scan"}),
        ("keyhop keys T --output --method s", {"skip", "scan"}),
        ("keyhop keys ", set()),
    ],
)
def test_the_tab_key_completes_without_a_call(
    words: str, completed: set[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv(COMPLETION, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.partition(",")[2] for line in lines if line} == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_help_says_how_a_shell_learns_to_complete(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert f"{COMPLETION}=bash_source" in keyhop("--help").out.decode()
    monkeypatch.setenv(COMPLETION, f"{shell}_source")
    assert main([]) == 0
    assert "keyhop" in capsys.readouterr().out


def test_help_imports_nothing_that_only_commands_need() -> None:
    """The TAB key and --help answer at once."""
    program = (
        "import sys; from keyhop.cli.main import main; main(['keys', '--help']);"
        "print(sorted({'boto3', 'botocore', 'rich', 'cattrs', 's3transfer'} & set(sys.modules)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines()[-1] == "[]"


def test_help_to_a_reader_that_has_gone_ends_as_other_output_does() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, "-m", "keyhop", "keys", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (141, b"")
