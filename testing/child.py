"""Run a server that ends with its parent: `python testing/child.py COMMAND ...`.

The parent holds the other end of this process's standard input. When it goes, however it goes, the
pipe closes, and the server is killed, with all processes that it has started: it has nothing to
save.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Run `command` until it ends or standard input closes; returns its exit status."""
    # Ctrl-C in a terminal reaches the whole group; the parent decides when the server stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    watcher = threading.Thread(target=_stop_with_parent, args=(server,), daemon=True)
    watcher.start()
    status = server.wait()
    _kill_group(server)
    return status


def _stop_with_parent(server: "subprocess.Popen[bytes]") -> None:
    os.read(sys.stdin.fileno(), 1)  # not sys.stdin: its lock would be held when Python ends
    _kill_group(server)


def _kill_group(server: "subprocess.Popen[bytes]") -> None:
    """End what there is of the server's processes; their group is named like the server."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
