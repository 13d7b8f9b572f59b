"""Check how the command line is parsed: options, refusals, help and completion."""

import inspect
import os
import re
import subprocess
import sys
import tempfile
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
import keyhop as keyhop_library
import pytest
from click.testing import CliRunner
from keyhop.cli import options as shared
from keyhop.cli.main import COMPLETION, command, main
from keyhop.cli.options import Options

from testing.databases import keyhop
from testing.servers import ROOT


def commands(group: click.Command, *names: str) -> Any:
    """Yield the names and the object of each command that is not a group."""
    children = getattr(group, "commands", {})
    if not children:
        yield names, group
    for name, child in children.items():
        yield from commands(child, *names, name)


ALL = dict(commands(command))
COMMANDS = {names: child for names, child in ALL.items() if isinstance(child, shared.Command)}
"""All commands except help and completion."""
FLEET = {"runs"}


def parsed(*arguments: str) -> Options:
    """Return the options of `keyhop keys T` with these arguments."""
    return options_of(("keys",), "T", *arguments)


def options_of(names: tuple[str, ...], *arguments: str) -> Options:
    parent = command.make_context("keyhop", [names[0]])
    return Options(**COMMANDS[names].make_context(names[-1], [*arguments], parent).params)


def test_a_value_may_look_like_an_option_after_an_equals_sign_only() -> None:
    """Otherwise a forgotten value would name a directory `--resume`, and resume nothing."""
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


def test_a_negative_number_is_parsed_as_a_value_and_refused() -> None:
    with pytest.raises(click.BadParameter, match=r"'-1\.5' is not a number above 0"):
        parsed("--max-read-units", "-1.5")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_a_rate_a_share_and_a_count_must_be_numbers(text: str) -> None:
    for name in ("--max-read-rate", "--verify", "--segments", "--give-up-after"):
        with pytest.raises(click.BadParameter, match=f"'{text}' is not a"):
            parsed(name, text)


def test_zero_seconds_of_grace_are_possible() -> None:
    assert options_of(("index", "verify"), "T", "--grace", "0").grace == 0
    with pytest.raises(click.BadParameter, match="'nan' is not a number of seconds"):
        options_of(("index", "verify"), "T", "--grace", "nan")


def test_threads_are_set_by_the_flag() -> None:
    assert [parsed().threads, parsed("--threads", "3").threads] == [None, 3]


def test_an_empty_value_is_a_value() -> None:
    assert (parsed("--summary", "").summary, parsed().summary) == ("", None)


@pytest.mark.parametrize("names", COMMANDS)
def test_an_option_has_the_same_help_and_meaning_in_all_commands(names: tuple[str, ...]) -> None:
    """The exceptions are options that share a name only."""
    different = {
        "--accept",
        "--count",
        "--dry-run",
        "--follow",
        "--limit",
        "--logical",
        "--max-cost",
    }
    different |= {"--max-read-units", "--metadata", "--output", "--queue", "--remote", "--resume"}
    different |= {"--separator", "--show-keys", "--stack"}
    for option in COMMANDS[names].params:
        for same in (parameter for each in COMMANDS.values() for parameter in each.params):
            a_page = "html" in f"{getattr(option, 'help', '')}{getattr(same, 'help', '')}"
            if option.opts == same.opts and not different & set(option.opts) and not a_page:
                assert option.to_info_dict() == same.to_info_dict()


CALLS = {
    ("keys",): "list_keys",
    ("each",): "for_each_key",
    ("report",): "examine",
    **{("index", name): f"KeyIndex.{name}" for name in command.commands["index"].commands},
    **{("shards", name): f"Shards.{name}" for name in command.commands["shards"].commands},
    **{("rekey", name): f"Rekey.{name}" for name in command.commands["rekey"].commands},
    **{("runs", name): f"Deployment.{name}" for name in command.commands["runs"].commands},
}
"""The public call of each command."""


@pytest.mark.parametrize("names", COMMANDS)
def test_each_command_has_a_public_call_with_its_dry_run(names: tuple[str, ...]) -> None:
    """The dry run of a list of keys is a separate call, estimate_keys."""
    call = attrgetter(CALLS[names])(keyhop_library)
    arguments = set(inspect.signature(call).parameters)
    flags = {parameter.name for parameter in COMMANDS[names].params}
    assert call.__doc__
    assert ("dry_run" in flags) == ("dry_run" in arguments or names == ("keys",))


WALKING = {
    *(("keys",), ("each",), ("report",), ("index", "build"), ("index", "verify")),
    *(("shards", "recover"), ("rekey", "start"), ("rekey", "verify")),
}


def test_only_commands_that_walk_a_table_have_a_maximum_cost() -> None:
    """A cutover, a rollback, a removal or the end of a re-key never stops half way."""
    for names in COMMANDS:
        flags = {parameter.name for parameter in COMMANDS[names].params}
        assert ("max_cost" in flags) == (names in WALKING)
        arguments = inspect.signature(attrgetter(CALLS[names])(keyhop_library)).parameters
        assert ("max_cost" in arguments) == (names in WALKING)


WITHOUT_DRY_RUN = {("rekey", "plan")}


def test_a_command_that_asks_can_show_what_would_happen() -> None:
    """The plan of a re-key changes nothing, so it needs no dry run."""
    flags = {names: {flag for p in child.params for flag in p.opts} for names, child in ALL.items()}
    asking = {names for names in ALL if {"--yes", "-y"} <= flags[names]}
    showing = {names for names in ALL if {"--dry-run", "-n"} <= flags[names]}
    assert asking - showing == WITHOUT_DRY_RUN
    assert not {("rekey", name) for name in ("throttle", "pause", "resume")} & asking
    assert set().union(*flags.values()) & {"--anyway", "--plan"} == set()


@pytest.mark.parametrize("names", COMMANDS)
def test_every_help_has_sections_and_says_what_arguments_are(names: tuple[str, ...]) -> None:
    text = CliRunner().invoke(command, [*names, "--help"]).output
    of_a_table = ("Where the table is:", "--endpoint-url URL", "TABLE  name or ARN")
    of_a_deployment = ("Where the deployment is:", "--stack NAME", "--region NAME")
    for part in (*(of_a_deployment if names[0] in FLEET else of_a_table), "-h, --help"):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("index", "bild"), "keyhop index: No such command 'bild'. Did you mean 'build'?"),
        (("help", "index", "bild"), "keyhop index: No such command 'bild'. Did you mean 'build'?"),
        (
            ("index", "T", "build"),
            "keyhop index: No such command 'T'. The command comes first: keyhop index build T",
        ),
        (("keys", "T", "--endpoint", "x"), "--endpoint-url"),
        (
            ("keys", "T", "--resume", "a", "-o", "b"),
            "--resume DIR continues in DIR: leave --output",
        ),
        (
            ("keys", "T", "--remote", "--threads", "4"),
            "--threads is for work on this machine: leave it out, or --remote",
        ),
        (
            ("--endpoint-url", "http://127.0.0.1:1", "keys", "T", "--remote"),
            "--endpoint-url does not work with --remote",
        ),
        (("keys", "T", "--follow"), "keyhop keys: --follow is for --remote: add that"),
        (("keys", "T", "--requests", "4"), "The requests in flight are limited by --threads"),
        (
            ("each", "T", "--requests", "4"),
            "keyhop each: No such option '--requests'. The requests in flight are limited by "
            "--max-read-rate",
        ),
        (
            ("keys", "T", "--role-arn", "foo"),
            "'foo' is not the ARN of a role, such as arn:aws:iam:",
        ),
        (("keys", "T", "--quiet=yes"), "keyhop keys: Option '--quiet' does not take a value"),
        (("index", "verify"), "keyhop index verify: Missing argument 'TABLE'"),
        (
            ("rekey", "plan", "T", "--partition-key", "tail:X"),
            "keyhop rekey plan: Invalid value for '--partition-key': 'tail:X' has the type 'X', "
            "and a key's type is S, N, B; if the name has a colon, write tail:X:S",
        ),
    ],
)
def test_a_wrong_input_is_reported_with_the_command_and_a_suggestion(
    arguments: tuple[str, ...], says: str
) -> None:
    result = keyhop(*arguments)
    name = says.partition(":")[0] if says.startswith("keyhop") else "keyhop keys"
    assert (result.status, result.out) == (2, b"")
    assert says in result.err
    assert result.err.endswith(f" (see {name} --help)\n")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("keyhop ", set(command.commands)),
        ("keyhop --format t", {"text", "typed-json"}),
        ("keyhop index re", {"redrive", "remove"}),
        ("keyhop keys T --max-r", {"--max-read-rate", "--max-read-units"}),
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
def test_help_says_how_a_shell_learns_to_complete(shell: str) -> None:
    assert f"keyhop completion {shell}" in keyhop("completion", "-h").out.decode()
    script = keyhop("completion", shell)
    assert (script.status, f"{COMPLETION}={shell}_complete" in script.out.decode()) == (0, True)


def test_bash_completes_by_the_script_that_is_printed() -> None:
    ask = (
        'eval "$("$0" completion bash)"; COMP_WORDS=(keyhop keys Orders --format t); COMP_CWORD=4; '
        '_keyhop_completion "$0"; echo "${COMPREPLY[@]}"'
    )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "keyhop"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m keyhop "$@"\n')
        program.chmod(0o755)
        process = subprocess.run(
            ["bash", "-c", ask, program], capture_output=True, text=True, check=False
        )
    assert process.stdout.split() == ["text", "typed-json"], process.stderr


def test_keyhop_alone_prints_its_help_and_so_does_a_group() -> None:
    for names in ((), ("index",), ("shards",)):
        bare, help_text = keyhop(*names), keyhop(*names, "--help")
        assert (bare.status, bare.out, bare.err) == (0, help_text.out, "")
        assert keyhop("help", *names).out == keyhop(*names, "-h").out == help_text.out


@pytest.mark.parametrize("names", ALL)
def test_the_two_ways_to_a_commands_help_print_the_same(names: tuple[str, ...]) -> None:
    assert keyhop("help", *names).out == keyhop(*names, "--help").out


@pytest.mark.parametrize(
    "names", sorted({(), *(names[:end] for names in ALL for end in (1, 2)), ("index",)})
)
def test_help_begins_with_examples_and_fits_80_columns(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = keyhop(*names, "--help").out.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith("examples") for line in lines[3:6])


@pytest.mark.parametrize("names", [names for names in ALL if names])
def test_help_suits_40_columns(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only names and commands to copy may be longer."""
    monkeypatch.setenv("COLUMNS", "40")
    lines = keyhop(*names, "--help").out.decode().splitlines()
    long = [line for line in lines if len(line) > 40]
    assert all(line.strip().startswith(("keyhop ", "eval ", "-")) for line in long), long


def test_a_page_that_a_message_names_is_printed() -> None:
    page = ROOT / "docs" / "reference" / "rekey-router.md"
    for name in ("docs/reference/rekey-router.md", "docs/reference/rekey-router.md#the-guard"):
        assert keyhop("help", name).out == page.read_bytes()


def test_the_pages_are_listed_with_their_titles() -> None:
    listed = keyhop("help", "docs").out.decode().splitlines()
    assert len(listed) == len([*(ROOT / "docs").rglob("*.md")])
    assert "docs/reference/rekey-templates.md Templates of a re-key" in {
        " ".join(line.split()) for line in listed
    }


def test_a_page_that_does_not_exist_is_refused() -> None:
    result = keyhop("help", "docs/rekye.md")
    assert (result.status, result.out) == (2, b"")
    assert "There is no page 'docs/rekye.md'. `keyhop help docs` lists the pages." in result.err


def test_every_page_that_a_text_of_the_library_names_exists() -> None:
    for path in (ROOT / "lambdas" / "keyhop").rglob("*.py"):
        for name in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text()):
            assert (ROOT / name).is_file(), path


PLACE = ("--region", "eu-west-1", "--profile", "p", "--format", "typed-json", "-q")


@pytest.mark.parametrize("before", range(3))
def test_common_options_are_accepted_before_and_after_a_command(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They work before `index`, between `index` and `build`, and after both; the last one wins."""
    calls: list[Options] = []
    monkeypatch.setattr("keyhop.cli.index_actions.run", lambda options: calls.append(options) or 0)
    words = [["index"], ["build", "T"], []]
    words.insert(before, list(PLACE))
    assert keyhop(*(word for group in words for word in group)).status == 0
    (options,) = calls
    assert (options.region, options.profile, options.format) == ("eu-west-1", "p", "typed-json")
    assert (options.quiet, options.stack) == (True, None)
    keyhop("--region", "a", "index", "--region", "b", "build", "T", "--region", "c")
    keyhop("--region", "a", "index", "--region", "b", "build", "T")
    assert [call.region for call in calls[1:]] == ["c", "b"]


def test_an_option_that_a_command_lacks_is_refused_before_it_too() -> None:
    result = keyhop("--endpoint-url", "http://127.0.0.1:1", "runs", "list")
    assert result.status == 2
    assert "keyhop runs list: No such option" in result.err
    assert "--endpoint-url" in result.err


def test_the_endpoint_may_be_given_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert parsed().endpoint_url == "http://127.0.0.1:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:2")
    assert parsed().endpoint_url == "http://127.0.0.1:2"
    assert parsed("--endpoint-url", "http://127.0.0.1:3").endpoint_url == "http://127.0.0.1:3"


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("--quie", "keys", "T"), "--quiet"),
        (("keys", "T", "--max-read-rat", "1"), "--max-read-rate"),
        (("index", "--reg", "x", "build", "T"), "--region"),
    ],
)
def test_a_shortened_option_gets_a_suggestion(arguments: tuple[str, ...], suggestion: str) -> None:
    result = keyhop(*arguments)
    assert result.status == 2
    assert "No such option" in result.err
    assert suggestion in result.err


def test_help_imports_nothing_that_only_commands_need() -> None:
    """Completion and --help must respond without delay."""
    program = (
        "import sys; from keyhop.cli.main import main; main(['keys', '--help']);"
        "print(sorted({'boto3', 'botocore', 'rich', 'cattrs', 's3transfer'} & set(sys.modules)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines()[-1] == "[]"


def test_help_for_a_closed_pipe_ends_with_status_141() -> None:
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


@pytest.mark.parametrize(
    "command",
    [
        ["keys", "Orders"],
        ["each", "Orders", "--put", "item.json"],
        ["index", "verify", "Orders"],
        ["rekey", "start", "Orders", "Orders2"],
        ["report", "Orders"],
    ],
)
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("json", "--format json"),
        (".JSON", "--format json"),
        ("csv", "--format csv"),
        ("jsonl", "--format typed-json"),
        ("html", "--format"),
    ],
)
def test_a_format_is_not_accepted_as_a_directory(
    command: list[str],
    name: str,
    advice: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--output", name]) == 2
    error = capsys.readouterr().err
    assert f"{name!r} is a format, and --output names a directory: use {advice}" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
