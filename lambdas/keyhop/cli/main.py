"""`keyhop`: parse, run one command, turn what happened into an exit status."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from keyhop import __version__
from keyhop.cli import index, keys, shards
from keyhop.cli.exit_status import BUDGET_SPENT, FAILED, INTERRUPTED, OUTPUT_CLOSED
from keyhop.errors import BudgetSpent, KeyhopError


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read on; exit with FAILED."""
        self.exit(FAILED, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> Parser:
    """The whole command line."""
    top = Parser(
        prog="keyhop",
        description="Know and manage the partition keys of a DynamoDB table.",
    )
    top.add_argument("--version", action="version", version=f"keyhop {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    keys.add_command(commands)
    index.add_command(commands)
    shards.add_command(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    if sys.stderr is None:  # closed by the caller: messages would go to the keys otherwise
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    options = parser().parse_args(arguments)
    debug = bool(os.environ.get("KEYHOP_DEBUG"))
    try:
        return int(options.run(options))
    except BrokenPipeError:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except (KeyhopError, OSError) as error:
        if debug:
            traceback.print_exc()
        print(f"keyhop: {_sentence(error)}", file=sys.stderr)
        return BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
    except Exception as error:
        if debug:
            traceback.print_exc()
        print(
            f"keyhop: internal error, {type(error).__name__}: {error}; set KEYHOP_DEBUG=1 to see "
            f"where, and please report it.",
            file=sys.stderr,
        )
        return FAILED


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    return str(error)
