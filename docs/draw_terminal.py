"""Draw docs/terminal.svg: `keyhop keys` in a terminal, as it ran just now: `make pictures`.

The flights of the demo, by route, in DynamoDB Local; the command in a pseudo-terminal. The line
that shows how far it is, which the command takes away at its end, is shown as it stood halfway.
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
BEGINS_ANEW, TAKEN_AWAY = "\r\x1b[2K", "\r\x1b[1A\x1b[2K"
CURSOR = re.compile(r"\x1b\[\?25[lh]")
FETCHED_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""What rich has a reader's browser load from elsewhere."""


def in_a_terminal(words: list[str], folder: str, url: str) -> str:
    """All that the command writes to its terminal."""
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
        except OSError:  # so ends a terminal whose other side is closed
            os.waitpid(process, 0)
            return written.decode()


def as_a_reader_sees_it(written: str) -> str:
    """The line that moves as it stood halfway, and all that stays."""
    moved, found, stays = CURSOR.sub("", written).replace("\r\n", "\n").rpartition(TAKEN_AWAY)
    if not found:
        return stays.rstrip()
    frames = moved.split(BEGINS_ANEW)
    return f"{frames[len(frames) // 2].rstrip()}\n{stays.rstrip()}"


def main() -> None:
    """Write the picture."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        with dynamodb_local() as url, tempfile.TemporaryDirectory() as folder:
            create_table(url, BY_ROUTE)
            load(local_client(url), islice(flights(), ITEMS), BY_ROUTE)
            for words in COMMANDS:
                console.print(Text(f"$ keyhop {' '.join(words)}", style="bold"))
                seen = as_a_reader_sees_it(in_a_terminal(words, folder, url))
                console.print(Text.from_ansi(seen), soft_wrap=False)
                console.print()
    drawn = console.export_svg(title="keyhop", unique_id="keyhop")
    PICTURE.write_text(FETCHED_FONTS.sub("", drawn))


if __name__ == "__main__":
    main()
