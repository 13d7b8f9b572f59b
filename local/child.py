"""Run a server that ends with its parent: `python -m local.child COMMAND ...`.

The parent holds the other end of this process's standard input. When it goes, however it goes, the
pipe closes, and the server is stopped.
"""

import signal
import subprocess
import sys
import threading

PATIENCE_SECONDS = 5.0


def main(command: list[str]) -> int:
    """Run `command` until it ends or standard input closes; returns its exit status."""
    # Ctrl-C in a terminal reaches the whole group; the parent decides when the server stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    watcher = threading.Thread(target=_stop_with_parent, args=(server,), daemon=True)
    watcher.start()
    return server.wait()


def _stop_with_parent(server: "subprocess.Popen[bytes]") -> None:
    sys.stdin.buffer.read()
    server.terminate()
    try:
        server.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
