"""Check connections on loopback, with servers that behave like servers and networks."""

import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from threading import Thread

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from keyhop.dynamodb.refusals import is_transient, may_have_been_served
from keyhop.dynamodb.transport import CHUNK_BYTES, Connections

from testing.servers import free_port

REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Amzn-RequestId: one\r\n\r\n{}"


@contextmanager
def server(
    *plans: list[bytes | None], wrap: Callable[[socket.socket], socket.socket] = lambda plain: plain
) -> Iterator[tuple[str, list[int]]]:
    """Serve one connection per plan, which has an answer to each request in turn.

    An answer of None holds the connection open without a word. A connection is closed after its
    last answer. Yields the address, and the number of the connection of each request.
    """
    used: list[int] = []
    open_connections = []

    def accept() -> None:
        for number, plan in enumerate(plans):
            try:
                plain, _ = listener.accept()
            except OSError:  # the test is over
                return
            Thread(target=serve, args=(number, plan, plain), daemon=True).start()

    def serve(number: int, plan: list[bytes | None], plain: socket.socket) -> None:
        try:
            connection = wrap(plain)
        except OSError:
            plain.close()
            return
        for answer in plan:
            received = connection.recv(CHUNK_BYTES)
            assert received in (REQUEST, b"")
            if received:
                used.append(number)
            if answer is None:
                open_connections.append(connection)
                return
            connection.sendall(answer)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", used
    for connection in open_connections:
        connection.close()


def test_a_connection_is_kept_for_the_next_request() -> None:
    with server([OK, OK, OK]) as (url, used):
        connections = Connections(url)
        answers = [connections.ask(REQUEST) for _ in range(3)]
    assert [(answer.status, answer.content) for answer in answers] == 3 * [(200, b"{}")]
    assert answers[0].headers() == {"content-length": "2", "x-amzn-requestid": "one"}
    assert used == [0, 0, 0]


@pytest.mark.parametrize(
    "last",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        OK + b"more than it said",
    ],
)
def test_a_connection_that_cannot_be_reused_is_replaced(last: bytes) -> None:
    with server([last, OK], [OK]) as (url, used):
        connections = Connections(url)
        assert [connections.ask(REQUEST).content for _ in range(2)] == [b"{}", b"{}"]
    assert used[-1] == 1


def test_a_connection_that_the_server_closed_is_replaced_before_a_send() -> None:
    with server([OK], [OK]) as (url, used):
        connections = Connections(url)
        connections.ask(REQUEST)
        while not used or connections._idle[0].recv(1, socket.MSG_PEEK):
            pass
        connections.ask(REQUEST)
    assert used == [0, 1]


def test_a_large_answer_comes_in_pieces() -> None:
    content = b"x" * (3 * CHUNK_BYTES)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content)
    with server([head + content, OK]) as (url, used):
        connections = Connections(url)
        assert connections.ask(REQUEST).content == content
        assert connections.ask(REQUEST).content == b"{}"
    assert used == [0, 0]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Le", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", ConnectionClosedError),
        (b"", ConnectionClosedError),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", HTTPClientError),
        (b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\n{}", HTTPClientError),
        (b"SSH-2.0-OpenSSH\r\n\r\n", HTTPClientError),
        (b"x" * (1 << 18), HTTPClientError),
    ],
)
def test_a_request_with_half_an_answer_may_be_retried_and_counts_as_served(
    answer: bytes | None, error: type[Exception]
) -> None:
    with server([answer], [OK]) as (url, used):
        connections = Connections(url)
        with pytest.raises(error) as raised:
            connections.ask(REQUEST)
        assert is_transient(raised.value)
        assert may_have_been_served(raised.value)
        assert connections.ask(REQUEST).content == b"{}"
    assert used == [0, 1]


def test_a_request_without_an_answer_may_be_retried_and_counts_as_served() -> None:
    with server([None], [None]) as (url, used):
        connections = Connections(url, read_timeout=0.2)
        for _ in range(2):
            with pytest.raises(ReadTimeoutError) as raised:
                connections.ask(REQUEST)
            assert is_transient(raised.value)
            assert may_have_been_served(raised.value)
        while sorted(used) != [0, 1]:  # the server may be late
            pass


def test_a_refused_connection_may_be_retried() -> None:
    with pytest.raises(EndpointConnectionError) as raised:
        Connections(f"http://127.0.0.1:{free_port()}").ask(REQUEST)
    assert is_transient(raised.value)
    assert not may_have_been_served(raised.value)
    with pytest.raises(EndpointConnectionError):
        Connections("http://no-such-host.invalid").ask(REQUEST)


def test_an_invalid_host_name_is_a_connection_error() -> None:
    with pytest.raises(EndpointConnectionError):
        Connections(f"http://{'x' * 70}.example").ask(REQUEST)


def test_an_unanswered_handshake_times_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ConnectTimeoutError):
            Connections(url, str(certificate(tmp_path)), connect_timeout=0.2).ask(REQUEST)


def test_a_child_process_opens_new_connections() -> None:
    with server([OK, OK], [OK]) as (url, used):
        connections = Connections(url)
        connections.ask(REQUEST)
        child = os.fork()
        if child == 0:
            try:
                connections.ask(REQUEST)
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert used == [0, 1]


def certificate(folder: Path, address: str = "127.0.0.1") -> Path:
    """Write a certificate for `address` with its key, to a file that may be trusted."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{address}.pem"
    path.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def serving(path: Path) -> Callable[[socket.socket], socket.socket]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return lambda plain: context.wrap_socket(plain, server_side=True)


def test_tls_accepts_a_server_that_the_bundle_trusts(tmp_path: Path) -> None:
    path = certificate(tmp_path)
    with server([OK, OK], wrap=serving(path)) as (url, used):
        connections = Connections(url.replace("http:", "https:"), str(path))
        assert [connections.ask(REQUEST).content for _ in range(2)] == [b"{}", b"{}"]
    assert used == [0, 0]


@pytest.mark.parametrize("trusted", ["other", "of another host", "none", "nothing in it"])
def test_tls_refuses_other_servers(trusted: str, tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    path = certificate(tmp_path / "shown", "127.0.0.2" if "host" in trusted else "127.0.0.1")
    bundle = path if "host" in trusted else certificate(tmp_path)
    if trusted == "none":
        bundle = tmp_path / "none.pem"
    if trusted == "nothing in it":
        bundle.write_text("")
    with server([OK], wrap=serving(path)) as (url, used):
        with pytest.raises(SSLError) as raised:
            Connections(url.replace("http:", "https:"), str(bundle)).ask(REQUEST)
        assert not is_transient(raised.value)
    assert used == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://dynamodb.us-east-1.amazonaws.com", "dynamodb.us-east-1.amazonaws.com"),
        ("https://example.com:443/", "example.com"),
        ("http://example.com:80", "example.com"),
        ("https://example.com:80", "example.com:80"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://[::1]:8000", "[::1]:8000"),
        ("http://[::1]", "[::1]"),
        ("https://Example.COM", "example.com"),
    ],
)
def test_the_host_is_in_the_form_that_is_signed(url: str, host: str) -> None:
    assert Connections(url).host == host
