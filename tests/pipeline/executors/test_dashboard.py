"""A dashboard is one that somebody serves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from gramline.pipeline.executors.dashboard import serves_dashboard


@contextmanager
def page(status: int, content: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/status"
        thread.join()


@pytest.mark.parametrize(
    ("status", "content", "is_there"),
    [
        (200, b"<title>Dask: Status</title>", True),
        (200, b"<p>Dask needs bokeh>=3.1.0 for the dashboard.</p>", False),
        (404, b"", False),
    ],
)
def test_only_a_page_that_is_there_counts(status: int, content: bytes, is_there: bool) -> None:
    with page(status, content) as link:
        assert serves_dashboard(link) is is_there


@pytest.mark.parametrize("link", ["", "http://127.0.0.1:1/status", "nonsense"])
def test_an_address_alone_is_no_dashboard(link: str) -> None:
    assert not serves_dashboard(link)
