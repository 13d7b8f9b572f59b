"""Run a server that ends with its parent: `python testing/child.py COMMAND ...`.

The server, and all processes that it has started, are killed as soon as the parent ends or closes
this process's standard input, or this process receives SIGINT, SIGTERM or SIGHUP. A server has
nothing to save.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Run `command` until it ends or has to stop, and return its exit status."""
    reader, writer = os.pipe()
    # The watcher kills the server, not a handler: a handler may run before Popen has returned.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(writer, b"x"))
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    watcher = threading.Thread(target=_stop_when_told, args=(server, reader), daemon=True)
    watcher.start()
    status = server.wait()
    _kill_group(server)
    return status


def _stop_when_told(server: "subprocess.Popen[bytes]", signals: int) -> None:
    """Kill the server once standard input is closed, or a signal has arrived."""
    # Not sys.stdin: its lock would be held when Python ends.
    select.select([sys.stdin.fileno(), signals], [], [])
    _kill_group(server)


def _kill_group(server: "subprocess.Popen[bytes]") -> None:
    """Kill all processes of the server's process group, whose id is the server's."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
