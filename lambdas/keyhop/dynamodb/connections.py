"""HTTP to one endpoint: connections that are kept, and as much of HTTP/1.1 as an answer needs.

A request is bytes, an answer is read once. Failures are botocore's, as its own session raises them.
"""

import os
import re
import select
import socket
import ssl
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)

CHUNK_BYTES = 1 << 16
MOST_HEAD_BYTES = 1 << 16
_HEADER = re.compile(r"\r\n([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*close[ \t]*\r\n", re.IGNORECASE)


class Answer(NamedTuple):
    """status: the number; head: from the first line to the empty one."""

    status: int
    head: bytes
    content: bytes

    def headers(self) -> dict[str, str]:
        """Return the headers by their names in lower case."""
        pairs = _HEADER.findall(self.head.decode("latin-1"))
        return {name.lower(): value for name, value in pairs}


class Connections:
    """Connections to one endpoint, as many as are in use at once; for many threads.

    url: http or https, host and port. ca_bundle: a file of certificates to trust; None for those
    of the system. Times in seconds.
    """

    def __init__(
        self,
        url: str,
        ca_bundle: str | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 30.0,
    ) -> None:
        parts = urlsplit(url)
        self.url = url
        self.is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self.is_secure else 80)
        self.ca_bundle = ca_bundle
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._idle: list[socket.socket] = []
        self._process = os.getpid()
        self._context: ssl.SSLContext | None = None
        self._lock = Lock()

    @property
    def host(self) -> str:
        """Return the value of the Host header. It contains the port only if that is not the default
        of the scheme.
        """
        name = f"[{self._host}]" if ":" in self._host else self._host
        return name if self._port == (443 if self.is_secure else 80) else f"{name}:{self._port}"

    def ask(self, request: bytes) -> Answer:
        """Send a request and read the answer.

        Raises botocore's EndpointConnectionError, ConnectTimeoutError or SSLError if nothing was
        sent; ReadTimeoutError, ConnectionClosedError or HTTPClientError if it may have been served.
        """
        connection = self._kept() or self._connect()
        is_kept = False
        try:
            connection.sendall(request)
            answer, is_kept = _read(connection)
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self.url, error=error) from error
        except OSError as error:
            raise ConnectionClosedError(endpoint_url=self.url, error=error) from error
        except ValueError as error:
            raise HTTPClientError(error=error) from error
        finally:
            if is_kept:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    def _kept(self) -> socket.socket | None:
        """The one that was used last, if the other side has not closed it since."""
        if self._process != os.getpid():  # after a fork they are the parent's
            self._idle, self._process = [], os.getpid()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                return None
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            if not poll.poll(0):
                return connection
            connection.close()
        return None

    def _connect(self) -> socket.socket:
        try:
            plain = socket.create_connection((self._host, self._port), self._connect_timeout)
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self.url, error=error) from error
        except (OSError, UnicodeError) as error:
            raise EndpointConnectionError(endpoint_url=self.url, error=error) from error
        connection = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.is_secure:
                connection = self._trust().wrap_socket(plain, server_hostname=self._host)
            connection.settimeout(self._read_timeout)
        except TimeoutError as error:
            plain.close()
            raise ConnectTimeoutError(endpoint_url=self.url, error=error) from error
        except ssl.SSLError as error:
            plain.close()
            raise SSLError(endpoint_url=self.url, error=error) from error
        except OSError as error:
            plain.close()
            raise EndpointConnectionError(endpoint_url=self.url, error=error) from error
        return connection

    def _trust(self) -> ssl.SSLContext:
        """Return one SSL context for all connections, because reading the certificates takes as
        long as a hundred requests.
        """
        with self._lock:
            if self._context is None:
                try:
                    self._context = ssl.create_default_context(cafile=self.ca_bundle)
                except OSError as error:
                    raise ssl.SSLError(f"{self.ca_bundle}: {error}") from error
            return self._context


def _read(connection: socket.socket) -> tuple[Answer, bool]:
    """Read an answer; return it with whether the connection can be used again.

    Raises:
        OSError: The connection is broken.
        ValueError: The bytes are not an HTTP answer.
    """
    data = connection.recv(CHUNK_BYTES)
    while (end := data.find(b"\r\n\r\n")) < 0:
        if len(data) > MOST_HEAD_BYTES:
            raise ValueError("an answer with an endless head")
        data += _more(connection)
    head = data[: end + 2]
    if not head.startswith(b"HTTP/1."):
        raise ValueError("the answer is not HTTP/1.1")
    status = int(head[9:12])
    length = _LENGTH.search(head)
    if length is None:
        if not _CHUNKED.search(head):
            raise ValueError("the answer does not say how long it is")
        return Answer(status, head, _chunks(connection, data[end + 4 :])), False
    total_length = end + 4 + int(length[1])
    content = data[end + 4 : total_length]
    if len(data) < total_length:
        content += _exactly(connection, total_length - len(data))
    is_kept = (
        len(data) <= total_length and head.startswith(b"HTTP/1.1") and not _CLOSES.search(head)
    )
    return Answer(status, head, content), is_kept


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(CHUNK_BYTES)
    if not data:
        raise ConnectionResetError("closed in the middle of an answer")
    return data


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = bytearray(length)
    remaining = memoryview(content)
    while remaining:
        count = connection.recv_into(remaining)
        if not count:
            raise ConnectionResetError("closed in the middle of an answer")
        remaining = remaining[count:]
    return bytes(content)


def _chunks(connection: socket.socket, data: bytes) -> bytes:
    """A chunked body, as proxies and some emulators send it, up to the last chunk."""
    content = b""
    while True:
        while (end := data.find(b"\r\n")) < 0:
            data += _more(connection)
        size = int(data[:end].partition(b";")[0], 16)
        if size == 0:
            return content
        while len(data) < end + size + 4:
            data += _more(connection)
        content += data[end + 2 : end + 2 + size]
        data = data[end + size + 4 :]
