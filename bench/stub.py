"""A server that answers every Scan with the same page, as fast as it can.

`python -m bench.stub ITEMS` prints its port. It ends when its standard input closes.
"""

import json
import os
import socket
import sys
import threading


def response(items: int) -> bytes:
    """One HTTP response with a page of `items` items."""
    body = json.dumps(
        {
            "Items": [{"pk": {"S": f"key-{number:08}"}} for number in range(items)],
            "Count": items,
            "ScannedCount": items,
            "LastEvaluatedKey": {"pk": {"S": "key-1"}, "sk": {"S": "x"}},
            "ConsumedCapacity": {"TableName": "Stub", "CapacityUnits": 0.5},
        }
    ).encode()
    head = [
        "HTTP/1.1 200 OK",
        "Content-Type: application/x-amz-json-1.0",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def serve(connection: socket.socket, answer: bytes) -> None:
    """Answer each request of a connection."""
    with connection, connection.makefile("rb") as incoming:
        while line := incoming.readline():
            length = 0
            while line not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                line = incoming.readline()
            incoming.read(length)
            connection.sendall(answer)


def main() -> None:
    """Listen on loopback until standard input closes."""
    answer = response(int(sys.argv[1]))
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection, answer), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
