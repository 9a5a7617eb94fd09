"""Which addresses are safe in plain text."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.addresses import is_exposed, is_loopback, refuse_exposed, split_address


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("tls://node1:8786", ("tls", "node1")),
        ("tcp://10.0.0.5:8786", ("tcp", "10.0.0.5")),
        ("node1:8786", ("tcp", "node1")),
        ("node1", ("tcp", "node1")),
        ("TCP://node1", ("tcp", "node1")),
        ("tcp://[::1]:8786", ("tcp", "::1")),
        ("tcp://::1", ("tcp", "::1")),
        ("inproc://10.0.0.5/123/1", ("inproc", "10.0.0.5/123/1")),
    ],
)
def test_protocol_and_host(address: str, parts: tuple[str, str]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://127.8.9.1:1", "tcp://[::1]:8786", "127.0.0.1:8786"])
def test_plain_text_on_loopback_is_fine(address: str) -> None:
    refuse_exposed(address, insecure_plain_text=False)
    assert not is_exposed(address)


@pytest.mark.parametrize("address", ["tls://10.0.0.5:8786", "tls://[2001:db8::1]:8786", "inproc://10.0.0.5/1/1"])
def test_what_is_encrypted_or_never_leaves_the_process_is_fine(address: str) -> None:
    assert not is_exposed(address)


@pytest.mark.parametrize(
    "address",
    [
        "tcp://10.0.0.5:8786",
        "10.0.0.5",
        "TCP://10.0.0.5:8786",
        "ucx://10.0.0.5:8786",
        "ws://10.0.0.5:8786",
        "tcp://0.0.0.0:8786",
        "tcp://[::]:8786",
        "tcp://[2001:db8::1]:8786",
        "tcp://:8786",
    ],
)
def test_plain_text_elsewhere_is_refused_unless_told(address: str) -> None:
    with pytest.raises(InputError, match=r"runs code as you; use tls:// .*--insecure-plain-text"):
        refuse_exposed(address, insecure_plain_text=False)
    refuse_exposed(address, insecure_plain_text=True)


def resolving_to(*found: str) -> Any:
    def answer(_host: str, _port: Any) -> list[Any]:
        if not found:
            raise socket.gaierror("unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in found]

    return answer


@pytest.mark.parametrize(
    ("found", "expected"),
    [(["127.0.0.1", "::1"], True), (["10.0.0.5"], False), (["127.0.0.1", "10.0.0.5"], False), ([], False)],
)
def test_a_name_is_what_it_resolves_to(monkeypatch: pytest.MonkeyPatch, found: list[str], expected: bool) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving_to(*found))
    assert is_loopback("node1") is expected
