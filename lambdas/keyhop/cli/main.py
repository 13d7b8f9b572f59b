"""`keyhop`: run one command, turn what happened into an exit status."""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from keyhop import __version__
from keyhop.cli import index, keys, shards
from keyhop.cli.exit_status import BUDGET_SPENT, FAILED, INTERRUPTED, OUTPUT_CLOSED
from keyhop.errors import BudgetSpent, KeyhopError

COMPLETION = "_KEYHOP_COMPLETE"


@click.group(
    commands=[keys.run, index.index, shards.shards],
    no_args_is_help=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def command() -> None:
    """Know and manage the partition keys of a DynamoDB table.

    \b
    examples:
      keyhop keys --help           each command has its own help, with examples
      keyhop keys Orders --plan    what would it cost to list the keys of Orders?
      keyhop keys Orders           list them

    \b
    The TAB key completes commands and options after one line in the set-up of your shell:
      eval "$(_KEYHOP_COMPLETE=bash_source keyhop)"    in ~/.bashrc; zsh_source in ~/.zshrc
      _KEYHOP_COMPLETE=fish_source keyhop | source     in ~/.config/fish/config.fish
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    if sys.stderr is None:  # closed by the caller: messages would go to the keys otherwise
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    try:
        return _run(sys.argv[1:] if arguments is None else list(arguments))
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
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("KEYHOP_DEBUG"):
            traceback.print_exc()
        print(f"keyhop: {_sentence(error)}", file=sys.stderr)
        return BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED


def _run(arguments: list[str]) -> int:
    """What click's own `main` does, which would give Ctrl-C and closed pipes other statuses."""
    if completion := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, "keyhop", COMPLETION, completion)
    with command.make_context("keyhop", arguments) as context:
        return int(command.invoke(context))


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, KeyhopError | OSError):
        return str(error)
    return (
        f"internal error, {type(error).__name__}: {error}; set KEYHOP_DEBUG=1 to see where, and "
        f"please report it."
    )
