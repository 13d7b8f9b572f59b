"""Run `keyhop keys` in a terminal, and draw docs/terminal.svg from its output: `make pictures`.

The table has the demo's flights by route, in DynamoDB Local. The command runs in a pseudo-terminal.
At its end, the command erases the line that shows its progress. The picture shows this line as it
was halfway.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "lambdas")]

from rich.console import Console  # noqa: E402
from rich.text import Text  # noqa: E402

from testing.databases import load  # noqa: E402
from testing.flights import BY_ROUTE, create_table, flights  # noqa: E402
from testing.servers import LOCAL_CREDENTIALS, dynamodb_local, local_client  # noqa: E402

PICTURE = ROOT / "docs" / "terminal.svg"
ITEMS = 40_000
COLUMNS, LINES = 100, 40
COMMANDS = (
    ["keys", BY_ROUTE, "--dry-run"],
    ["keys", BY_ROUTE, "--max-read-rate", "30", "--output", "routes"],
)
NEXT_FRAME, ERASE_FRAME = "\r\x1b[2K", "\r\x1b[1A\x1b[2K"
CURSOR = re.compile(r"\x1b\[\?25[lh]")
FETCHED_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that a reader's browser would load from the network; rich refers to them."""


def run_in_terminal(words: list[str], folder: str, url: str) -> str:
    """Run the command in a pseudo-terminal, and return everything that it writes there."""
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        os.chdir(folder)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path[:2]),
            "TERM": "xterm-256color",
            "AWS_ENDPOINT_URL_DYNAMODB": url,
            "AWS_REGION": LOCAL_CREDENTIALS["region_name"],
            "AWS_ACCESS_KEY_ID": LOCAL_CREDENTIALS["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": LOCAL_CREDENTIALS["aws_secret_access_key"],
        }
        command = [sys.executable, "-m", "keyhop", *words]
        os.execve(command[0], command, environment)  # noqa: S606
    written = b""
    while True:
        try:
            written += os.read(terminal, 1 << 16)
        except OSError:  # the command has ended and closed its side of the terminal
            os.waitpid(process, 0)
            return written.decode()


def visible_text(written: str) -> str:
    """Return the progress line as it was halfway, and the lines that remain."""
    progress, erased, lasting = (
        CURSOR.sub("", written).replace("\r\n", "\n").rpartition(ERASE_FRAME)
    )
    if not erased:
        return lasting.rstrip()
    frames = progress.split(NEXT_FRAME)
    return f"{frames[len(frames) // 2].rstrip()}\n{lasting.rstrip()}"


def main() -> None:
    """Write the picture."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        with dynamodb_local() as url, tempfile.TemporaryDirectory() as folder:
            create_table(url, BY_ROUTE)
            load(local_client(url), islice(flights(), ITEMS), BY_ROUTE)
            for words in COMMANDS:
                console.print(Text(f"$ keyhop {' '.join(words)}", style="bold"))
                visible = visible_text(run_in_terminal(words, folder, url))
                console.print(Text.from_ansi(visible), soft_wrap=False)
                console.print()
    svg = console.export_svg(title="keyhop", unique_id="keyhop")
    PICTURE.write_text(FETCHED_FONTS.sub("", svg))


if __name__ == "__main__":
    main()
