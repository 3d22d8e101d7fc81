"""An S3 server on loopback that asks for credentials, with one bucket and one user who may read it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

WHY = "photos on S3 are tested where `pip install s3fs boto3 moto flask flask-cors` was run (CONTRIBUTING.md)"


class S3Server:
    """A server with a bucket named ``album``; fsspec of this process and of its children knows its user."""

    def __init__(self, url: str, patch: pytest.MonkeyPatch) -> None:
        import boto3

        self.url, self._patch = url, patch
        access = {"aws_access_key_id": "owner", "aws_secret_access_key": "owner", "region_name": "us-east-1"}
        self._tell("reset", "")  # all servers of a process have the same buckets
        self._tell("reset-auth", "inf")
        self._s3: Any = boto3.client("s3", endpoint_url=url, **access)
        self._s3.create_bucket(Bucket="album")
        users: Any = boto3.client("iam", endpoint_url=url, **access)
        users.create_user(UserName="reader")
        allowed = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        users.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=policy)
        key = users.create_access_key(UserName="reader")["AccessKey"]
        self.key, self.secret = key["AccessKeyId"], key["SecretAccessKey"]
        self.configure()

    def configure(self, **changed: str) -> None:
        """Tell fsspec where the server is and who asks, with some of it changed."""
        import fsspec

        settings = {"endpoint_url": self.url, "key": self.key, "secret": self.secret, **changed}
        quick = {"config_kwargs": {"retries": {"max_attempts": 0}}}
        self._patch.setitem(fsspec.config.conf, "s3", settings | quick)  # read when it is imported
        for name, value in settings.items():
            self._patch.setenv(f"FSSPEC_S3_{name.upper()}", value)

    def put(self, name: str, data: bytes) -> None:
        """Store an object in the bucket, as its owner."""
        self._tell("reset-auth", "inf")
        self._s3.put_object(Bucket="album", Key=name, Body=data)
        self._tell("reset-auth", "0")

    def delete(self, name: str) -> None:
        """Delete an object, as the bucket's owner."""
        self._tell("reset-auth", "inf")
        self._s3.delete_object(Bucket="album", Key=name)
        self._tell("reset-auth", "0")

    def _tell(self, what: str, value: str) -> None:
        """Tell the server something of its own: after how many requests it asks for credentials."""
        url, headers = f"{self.url}/moto-api/{what}", {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(url, value.encode(), headers, method="POST")).close()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server; tests are skipped where the packages are missing."""
    for package in ("s3fs", "boto3", "moto", "flask", "flask_cors"):
        pytest.importorskip(package, reason=WHY)
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        try:
            yield S3Server(f"http://{host}:{port}", patch)
        finally:
            server.stop()
