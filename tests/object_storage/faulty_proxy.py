"""A reverse proxy that spoils answers on order: statuses, delays and cut connections, by method and path."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Fault:
    """What happens to the next `times` requests that it fits."""

    method: str
    path: str  # the path contains this
    times: int
    status: int | None = None  # answer with it instead of asking the server
    delay: float = 0.0  # seconds before the request goes on
    cut: int | None = None  # bytes of the answer that come through before the connection breaks
    hits: int = 0

    def fits(self, method: str, path: str) -> bool:
        return self.hits < self.times and method == self.method and self.path in path


@dataclass
class Proxy:
    """Where it listens, and what it spoils."""

    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)

    def add(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        return fault


@contextmanager
def faulty_proxy(upstream: int) -> Iterator[Proxy]:
    """A proxy to 127.0.0.1:upstream that runs in a thread of this process."""
    proxy, loop, ready = Proxy(), asyncio.new_event_loop(), threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(lambda r, w: _answer(proxy, upstream, r, w), "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            with suppress(asyncio.CancelledError):
                await server.serve_forever()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task = loop.create_task(serve())
        loop.run_until_complete(task)
        for pending in asyncio.all_tasks(loop):
            pending.cancel()
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()

    thread = threading.Thread(target=run, name="faulty-proxy")
    thread.start()
    ready.wait(20)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        thread.join(20)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """Head and body of one HTTP message; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if headers.get(b"transfer-encoding") == b"chunked":
        body = b""
        while True:
            size = await reader.readuntil(b"\r\n")
            piece = await reader.readexactly(int(size.split(b";")[0], 16) + 2)
            body += size + piece
            if len(piece) == 2:
                return head, body
    return head, await reader.readexactly(int(headers.get(b"content-length", b"0")))


async def _answer(proxy: Proxy, upstream: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Requests of one connection, one after another; to the server each has a connection of its own."""
    with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        while (request := await _message(reader)) is not None:
            head, body = request
            method, path = head.split(b" ")[0].decode(), head.split(b" ")[1].decode()
            proxy.requests.append((method, path))
            fault = next((found for found in proxy.faults if found.fits(method, path)), None)
            if fault is not None:
                fault.hits += 1
                await asyncio.sleep(fault.delay)
            if fault is not None and fault.status is not None:
                text = b"<Error><Code>Spoilt</Code><Message>on order</Message></Error>"
                writer.write(b"HTTP/1.1 %d Spoilt\r\nContent-Length: %d\r\n\r\n" % (fault.status, len(text)))
                writer.write(b"" if method == "HEAD" else text)
                await writer.drain()
                continue
            reply = await _ask(upstream, head, body, method)
            if fault is not None and fault.cut is not None:
                writer.write(reply[: fault.cut])
                await writer.drain()
                break
            writer.write(reply)
            await writer.drain()
    writer.close()


async def _ask(upstream: int, head: bytes, body: bytes, method: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", upstream)
    try:
        writer.write(head + body)
        await writer.drain()
        if method == "HEAD":
            return await reader.readuntil(b"\r\n\r\n")
        found = await _message(reader)
        return b"" if found is None else found[0] + found[1]
    finally:
        writer.close()
