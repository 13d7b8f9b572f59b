"""`keyhop`: run one command, turn what happened into an exit status."""

import os
import sys
import traceback
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click
from click.shell_completion import shell_complete

from keyhop import __version__
from keyhop.cli import options as shared
from keyhop.cli import pages
from keyhop.cli.exit_status import BUDGET_SPENT, FAILED, INTERRUPTED, OUTPUT_CLOSED, SENTENCE
from keyhop.errors import BudgetSpent, CannotStart, KeyhopError

COMPLETION = "_KEYHOP_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


class Commands(UserDict[str, Any]):
    """Commands by name. Each is imported when it is first used, as all together take 20 ms.

    The value of a command that is not yet imported is its name in the module of the same name.
    """

    def __getitem__(self, name: str) -> click.Command:
        if isinstance(attribute := self.data[name], str):
            self.data[name] = getattr(import_module(f"keyhop.cli.{name}"), attribute)
        command: click.Command = self.data[name]
        return command


@click.group(
    cls=shared.Group,
    commands=Commands(
        keys="run",
        each="run",
        index="index",
        shards="shards",
        report="run",
        rekey="rekey",
        runs="runs",
        permissions="run",
    ),
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@shared.everywhere
@shared.stack
@click.version_option(
    __version__, "--version", "-V", message="%(prog)s %(version)s", help="print the version"
)
def command(**_: Any) -> None:
    """Know and manage the partition keys of a DynamoDB table.

    \b
    examples:
      keyhop keys Orders --dry-run   what would it cost to list the keys?
      keyhop keys Orders             list them
      keyhop help index build        each command has its own help, with examples
      keyhop help docs               the pages of the documentation

    The options below can be given before a command or after it.
    """


@command.command("help", cls=click.Command, short_help="Show the help of a command, or a page.")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
def help_(names: tuple[str, ...]) -> None:
    """Show the help of a command, or a page of the documentation.

    \b
    examples:
      keyhop help index build              the help of a command
      keyhop help docs                     the list of the pages
      keyhop help docs/how-to/rekey.md     a page that a message names
    """
    if names and names[0].partition("/")[0] == "docs":
        pages.show(names[0])
        return
    with command.make_context("keyhop", [*names, "--help"]) as context:
        command.invoke(context)


@command.command("completion", cls=click.Command, short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print a script that completes commands, options and their fixed values in your shell.

    \b
    examples:
      eval "$(keyhop completion bash)"     in ~/.bashrc
      eval "$(keyhop completion zsh)"      in ~/.zshrc
      keyhop completion fish | source      in ~/.config/fish/config.fish

    It does not complete names of tables, which would take a call to AWS of a second or more.
    """
    return shell_complete(command, {}, "keyhop", COMPLETION, f"{shell}_source")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    if sys.stderr is None:  # closed by the caller: messages would go to the keys otherwise
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        _check_arguments(arguments)
        # What click's own `main` does, which would give Ctrl-C and closed pipes other statuses.
        if completion := os.environ.get(COMPLETION):
            return shell_complete(command, {}, "keyhop", COMPLETION, completion)
        columns = get_terminal_size().columns
        width = max(columns, 20) if columns < 52 else None  # for click, 50 is the least
        with command.make_context("keyhop", [*arguments], terminal_width=width) as context:
            return int(command.invoke(context) or 0)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx else "keyhop"
        print(f"{name}: {error.format_message().rstrip('.')} (see {name} --help)", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except KeyboardInterrupt:
        print(SENTENCE, file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("KEYHOP_DEBUG"):
            traceback.print_exc()
        print(f"keyhop: {_sentence(error)}", file=sys.stderr)
        return BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED


def _check_arguments(arguments: Sequence[str]) -> None:
    """Check that all arguments are text, also the names of files.

    Raises:
        CannotStart: One is not UTF-8, so that Python has replaced bytes by lone surrogates.
    """
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise CannotStart(
                f"The argument {argument!r} is not UTF-8. Give names, keys and paths in UTF-8, and "
                "keys that are binary in base64."
            ) from error


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, KeyhopError | OSError):
        return shared.with_flags(str(error))
    return (
        f"internal error, {type(error).__name__}: {error}; set KEYHOP_DEBUG=1 to see where, and "
        f"please report it."
    )
