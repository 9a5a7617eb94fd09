"""A real S3-protocol server on loopback, in a process of its own: `python s3_server.py` prints its port and serves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "bucket"
ACCESS, SECRET = "loopback-key", "very-secret-7f3a9"  # whatever stands here must never be seen in any output
SERVE = """
import sys
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
client.create_bucket(Bucket=sys.argv[1])
print(port, flush=True)
sys.stdin.read()
"""


def credentials(port: int) -> dict[str, str]:
    """What the environment of every process that opens s3:// urls must hold."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of a server with one empty bucket; it ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, BUCKET],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | credentials(0) | {"AWS_ENDPOINT_URL": ""},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.strip().isdigit(), "the S3 server did not start"
        yield int(line)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
