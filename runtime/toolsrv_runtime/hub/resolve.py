"""One file of a repository, as the hub describes it: its size and digest, before any of it is here.

A hub answers with a redirect to its store; the headers of that answer carry the SHA-256 of a large
file, its size, and the commit that a revision stands for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.hub.errors import HubError, told_plainly
from toolsrv_runtime.hub.library import set_up
from toolsrv_runtime.hub.listing import RemoteFile, RepoKind, check_address

_SHA256 = re.compile(r"[0-9a-f]{64}")
MAIN = "main"


def digest(etag: str | None) -> str | None:
    """Return the SHA-256 that an ETag is, None where it is something else (a git hash)."""
    return etag if etag and _SHA256.fullmatch(etag) else None


def remote_file(
    repo: str,
    name: str,
    *,
    kind: RepoKind = "model",
    revision: str = MAIN,
    endpoint: str | None = None,
) -> RemoteFile:
    """Return a file of a repository with the size (bytes), digest and commit that the hub tells.

    Raises:
        UsageError: ``repo`` is not the name of one, or ``endpoint`` no address.
        NotFoundError: There is no such repository, revision or file, or it needs a token.
        HubError: The hub cannot be reached, refuses, or tells no size.
    """
    check_address(endpoint)
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with
    from huggingface_hub import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415 - heavy
    from huggingface_hub.errors import HFValidationError  # noqa: PLC0415 - heavy

    set_up()
    what = f"{repo}:{name}"
    try:
        with told_plainly(what, endpoint):
            url = hf_hub_url(repo, name, repo_type=kind, revision=revision, endpoint=endpoint)
            found = get_hf_file_metadata(url, endpoint=endpoint)
    except HFValidationError:
        raise UsageError(
            f"{repo!r} is not the name of a repository", hint="write OWNER/NAME"
        ) from None
    except httpx2.TransportError as error:
        raise HubError(
            f"the connection broke while {what} was asked for: {error or type(error).__name__}",
            hint="try again",
        ) from error
    if found.size is None:
        raise HubError(
            f"the hub does not tell how large {what} is",
            hint="check HF_ENDPOINT if it is set, and whether a proxy or a login page answers",
        )
    return RemoteFile(
        repo=repo,
        name=name,
        size_bytes=found.size,
        sha256=digest(found.etag),
        commit=found.commit_hash or revision,
        kind=kind,
    )


def licence_of(tags: Sequence[str]) -> str:
    """Return the licence among a repository's tags (``license:mit``), ``""`` without one."""
    named = (tag.removeprefix("license:") for tag in tags if tag.startswith("license:"))
    return next(named, "")


def dataset_licence(repo: str, *, endpoint: str | None = None) -> str:
    """Return the licence that a data set's page states, ``""`` where it states none.

    Raises:
        NotFoundError: There is no such data set, or it needs a token.
        HubError: The hub cannot be reached, or answers as no hub does.
    """
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with
    from huggingface_hub import HfApi  # noqa: PLC0415 - heavy

    set_up()
    try:
        with told_plainly(repo, endpoint):
            return licence_of(HfApi(endpoint=endpoint).dataset_info(repo).tags or ())
    except httpx2.TransportError as error:
        raise HubError(
            f"the connection broke while {repo} was asked for: {error or type(error).__name__}",
            hint="try again",
        ) from error
