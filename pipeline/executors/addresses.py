"""Which addresses of a Dask cluster may be used without encryption: those that never leave this machine.

A Dask scheduler, and every worker, unpickles and runs what it is sent. Without TLS there is no password and no
certificate in between: who reaches the port, runs code.
"""

from __future__ import annotations

import ipaddress
import socket

from gramline.pipeline.errors import InputError

DANGER = "anybody who reaches a plain-text port of Dask runs code as you"
WAY_OUT = (
    "use tls:// with certificates of `gramline cluster certs`, keep the cluster on 127.0.0.1, or accept the danger "
    "(--insecure-plain-text)"
)
ENCRYPTED = ("tls", "wss")
IN_PROCESS = ("inproc",)


def split_address(address: str) -> tuple[str, str]:
    """Protocol and host: ("tls", "node1") of tls://node1:8786; an address without protocol is plain tcp."""
    protocol, separator, rest = address.partition("://")
    if not separator:
        protocol, rest = "tcp", address
    if rest.startswith("["):
        return protocol.lower(), rest[1:].partition("]")[0]
    host, _, _ = rest.rpartition(":")
    return protocol.lower(), rest if not host or ":" in host else host


def is_loopback(host: str) -> bool:
    """True when every address that `host` stands for is of this machine's loopback interface."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        addresses = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host or None, None)}
    except (OSError, UnicodeError):
        return False
    return bool(host) and all(ipaddress.ip_address(one).is_loopback for one in addresses)


def is_exposed(address: str) -> bool:
    """True when what is said at `address` crosses a network unencrypted."""
    protocol, host = split_address(address)
    return protocol not in ENCRYPTED + IN_PROCESS and not is_loopback(host)


def refuse_exposed(address: str, *, insecure_plain_text: bool, what: str = "the Dask scheduler") -> None:
    """InputError for a plain-text address on a network, unless the danger was accepted."""
    if not insecure_plain_text and is_exposed(address):
        raise InputError(f"{what} at {address} is not encrypted and not on loopback: {DANGER}", advice=WAY_OUT)
