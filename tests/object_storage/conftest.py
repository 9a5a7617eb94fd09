"""One S3 server for all tests of this folder; every test has a url and an environment of its own."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator

import pytest
from object_storage.faulty_proxy import Proxy, faulty_proxy
from object_storage.s3_server import BUCKET, credentials, s3_server

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    for needed in ("obstore", "moto", "boto3", "flask"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    with s3_server() as port:
        yield port


@pytest.fixture
def url(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """An s3:// url that nobody else uses, and credentials in the environment."""
    for name, value in credentials(s3_port).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/folder/{next(NUMBERS)}.zarr"


@pytest.fixture
def proxy(s3_port: int, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The server seen through a proxy that can spoil its answers."""
    assert url
    with faulty_proxy(s3_port) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{found.port}")
        yield found
