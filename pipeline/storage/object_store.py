"""Object stores by url (s3:// and friends): the only file that imports obstore.

Credentials, endpoint and region come from the environment of the process that opens the url (AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL, ...). Only urls travel in task graphs, job files, reports and messages, so a
url that carries a secret itself is refused before anything repeats it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from gramline.pipeline.errors import StoreError, first_line

REMOTE_ERRORS: tuple[type[Exception], ...] = ()  # what an object store raises when it refuses or fails,
PASSING: tuple[type[Exception], ...] = ()  # when the next try may go well,
DENIED: tuple[type[Exception], ...] = ()  # and when the credentials are not enough
try:
    import obstore
    import obstore.store
    from obstore import exceptions as refusals
except ImportError:  # only who has the extra `s3` uses object stores
    obstore = None  # type: ignore[assignment]
else:
    REMOTE_ERRORS, PASSING = (refusals.BaseError,), (refusals.GenericError,)
    DENIED = (refusals.PermissionDeniedError, refusals.UnauthenticatedError)
STORAGE_ERRORS: tuple[type[Exception], ...] = (OSError, *REMOTE_ERRORS)

# Obstore's own defaults ride out a few seconds; a server that restarts takes longer. 5xx, timeouts and connections
# that were cut are tried again after 0.1, 0.2, 0.4, ... seconds, at most 15 apart.
RETRIES: dict[str, Any] = {
    "max_retries": 12,
    "retry_timeout": timedelta(minutes=3),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=15), "base": 2},
}
TIMEOUTS = {"timeout": "60s", "connect_timeout": "5s"}
REMOTE_ADVICE = "check the url, and the credentials and the endpoint in the environment"


def refuse_secrets(url: str) -> None:
    """A url goes into task graphs, reports and messages: one with a user, a password or a query is refused."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme in ("file", "memory"):
        return
    if "@" in rest.partition("/")[0] or "?" in rest or "#" in rest:
        host = urlsplit(url).hostname or "..."
        raise StoreError(
            f"the url {scheme}://{host}/... carries a user, a password or a query",
            advice="give the plain url, and credentials in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
            "...)",
        )


def open_bucket(url: str) -> Any:
    """The obstore store of everything below `url`, with retries; credentials are those of this very process."""
    refuse_secrets(url)
    if obstore is None:
        raise StoreError(f"{url} needs the package obstore", advice="install gramline[s3]")
    try:
        opener: Any = obstore.store.from_url  # its overloads tell apart kinds of stores, a url in a variable cannot
        return opener(url, client_options=_client_options(), retry_config=RETRIES)
    except Exception as error:  # noqa: BLE001 - obstore has one exception class per kind of refusal
        reason = first_line(error)
        if "URL" in reason:  # obstore's word for a scheme that it does not know and for a bucket without a name
            advice = "give one like s3://bucket/name, or a path"
            raise StoreError(f"{url} is not the url of an object store", advice=advice) from None
        raise StoreError(f"{url} cannot be opened: {reason}", advice=REMOTE_ADVICE) from None


def _client_options() -> dict[str, Any]:
    """Timeouts, unless the environment names its own; http is for servers that the environment names by such a url."""
    named = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
    options: dict[str, Any] = {key: value for key, value in TIMEOUTS.items() if f"AWS_{key.upper()}" not in os.environ}
    return options | ({"allow_http": True} if named.startswith("http://") else {})


def sized_keys(bucket: Any, prefix: str) -> Iterator[tuple[str, int]]:
    """Every key below a prefix with its size; a thousand per request."""
    for page in obstore.list(bucket, prefix):
        yield from ((item["path"], item["size"]) for item in page)


def dated_keys(bucket: Any, prefix: str) -> Iterator[tuple[str, float]]:
    """Every key below a prefix with the time it was written, in seconds."""
    for page in obstore.list(bucket, prefix):
        yield from ((item["path"], item["last_modified"].timestamp()) for item in page)


def folders(bucket: Any, prefix: str) -> list[str]:
    """The folders right below a prefix, without what is in them."""
    return [folder.rstrip("/") for folder in obstore.list_with_delimiter(bucket, prefix)["common_prefixes"]]


def put(bucket: Any, key: str, content: bytes, *, only_new: bool = False) -> bool:
    """Store an object whole; with `only_new`, False when there is one already and it stays."""
    if not only_new:
        obstore.put(bucket, key, content)
        return True
    try:
        obstore.put(bucket, key, content, mode="create", use_multipart=False)
    except refusals.AlreadyExistsError:
        return False
    except refusals.NotSupportedError:  # a server that cannot tell: the last writer wins, and both wrote the same
        obstore.put(bucket, key, content)
    return True


def get(bucket: Any, key: str) -> bytes | None:
    """An object whole; None where there is none."""
    try:
        return bytes(obstore.get(bucket, key).bytes())
    except (FileNotFoundError, refusals.NotFoundError):
        return None


def update_document(bucket: Any, key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Replace a JSON document by `change` of what it holds; when somebody else was faster, of what they wrote."""
    while True:
        stored = obstore.get(bucket, key)
        document = json.loads(bytes(stored.bytes()))
        changed = change(document)
        version = {name: stored.meta[name] for name in ("e_tag", "version") if stored.meta.get(name) is not None}
        if changed == document or _put_over(bucket, key, json.dumps(changed, indent=2).encode(), version):
            return


def _put_over(bucket: Any, key: str, content: bytes, version: Any) -> bool:
    """Store an object over the version that was read; False when there is another one by now, which stays.

    Also when the answer to the first try was lost: then the other one is our own.
    """
    try:
        obstore.put(bucket, key, content, mode=version, use_multipart=False)
    except refusals.PreconditionError:
        return False
    except refusals.NotSupportedError:  # a server that cannot compare: what was just read is what is replaced
        obstore.put(bucket, key, content)
    return True


def has_attributes(bucket: Any, key: str) -> bool:
    """True unless the document, which is in the list of objects, is that of a group that was never finished."""
    document = _listed_document(bucket, key)
    return document is None or bool(document.get("attributes"))


def is_group(bucket: Any, key: str) -> bool:
    """True unless the document, which is in the list of objects, is that of an array."""
    document = _listed_document(bucket, key)
    return document is None or document.get("node_type") != "array"


def _listed_document(bucket: Any, key: str) -> dict[str, Any] | None:
    """A JSON document; None when it is denied or damaged, but there: nobody's to replace."""
    try:
        content = json.loads(bytes(obstore.get(bucket, key).bytes()))
    except (FileNotFoundError, refusals.NotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def delete(bucket: Any, keys: list[str]) -> None:
    """Remove objects, those that are there."""
    if keys:
        obstore.delete(bucket, keys)
