"""Which GGUF files a repository of a hub holds, and which one is meant.

Which hub, token and offline mode are huggingface_hub's business (``HF_ENDPOINT``, ``HF_TOKEN``,
``HF_HUB_OFFLINE``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.footprint import told
from toolsrv_runtime.hub.errors import HubError, told_plainly
from toolsrv_runtime.hub.library import set_up
from toolsrv_runtime.suitable import parts

RepoKind = Literal["model", "dataset"]


class RemoteFile(BaseModel):
    """A file in a repository, or at a web address (``repo``, with its ``etag``).

    ``sha256`` is None where nobody tells one; ``commit`` changes with the content.
    """

    model_config = ConfigDict(frozen=True)

    repo: str
    name: str
    size_bytes: int
    sha256: str | None
    commit: str
    kind: RepoKind = "model"
    etag: str = ""


def gguf_files(repo: str, *, endpoint: str | None = None) -> list[RemoteFile]:
    """Return the GGUF files of a repository, by name.

    Raises:
        UsageError: ``repo`` is not the name of one, or ``endpoint`` no address.
        NotFoundError: There is none of that name, or it needs a token.
        HubError: The hub cannot be reached, or answers as no hub does.
    """
    return [one for one in repo_files(repo, endpoint=endpoint) if _is_gguf(one)]


def repo_files(repo: str, *, endpoint: str | None = None) -> list[RemoteFile]:
    """Return all files of a model repository, by name. Raises as ``gguf_files``."""
    check_address(endpoint)
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with
    from huggingface_hub import HfApi  # noqa: PLC0415 - heavy
    from huggingface_hub.errors import HFValidationError  # noqa: PLC0415 - heavy

    set_up()
    try:
        with told_plainly(repo, endpoint):
            found = HfApi(endpoint=endpoint).model_info(repo, files_metadata=True)
            files = [
                RemoteFile(
                    repo=repo,
                    name=one.rfilename,
                    size_bytes=one.size or 0,
                    sha256=one.lfs.sha256 if one.lfs else None,
                    commit=found.sha or "main",
                )
                for one in found.siblings or []
            ]
    except HFValidationError:
        raise UsageError(
            f"{repo!r} is not the name of a repository", hint="write OWNER/NAME or OWNER/NAME:FILE"
        ) from None
    except httpx2.TransportError as error:
        raise HubError(
            f"the connection broke while {repo} was asked for: {error or type(error).__name__}",
            hint="try again",
        ) from error
    return sorted(files, key=lambda one: one.name)


def _is_gguf(file: RemoteFile) -> bool:
    return file.name.lower().endswith(".gguf")


def check_address(endpoint: str | None) -> None:
    """Refuse what is no address before huggingface_hub is imported, which fails with one.

    Raises:
        UsageError: It is none.
    """
    if endpoint is None:
        return
    try:
        place = urlsplit(endpoint)
        sound = place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(
            f"{endpoint!r} is not the address of a hub", hint="set HF_ENDPOINT to one, or unset it"
        )


def pick(repo: str, files: list[RemoteFile], name: str | None) -> list[RemoteFile]:
    """Return the file to bring, in all its parts: the named one, or the only one.

    Raises:
        NotFoundError: There is no such file.
        UsageError: There are several to choose from; lists them with their sizes.
    """
    models = [one for one in files if parts(Path(one.name))[0].as_posix() == one.name]
    listed = ", ".join(f"{one.name} ({told(one.size_bytes)})" for one in models)
    if not files:
        raise NotFoundError(
            f"{repo} holds no GGUF file",
            hint="look for a repository whose name ends in GGUF, or download the checkpoint and: "
            "toolsrv model convert",
        )
    chosen = [one for one in models if name in (None, one.name)]
    if not chosen:
        raise NotFoundError(f"{repo} holds no file {name!r}", hint=f"it holds {listed}")
    if len(chosen) > 1:
        raise UsageError(
            f"{repo} holds {len(chosen)} GGUF files: {listed}",
            hint=f"name one: toolsrv model pull {repo}:{chosen[0].name}",
        )
    wanted = {one.as_posix() for one in parts(Path(chosen[0].name))}
    return [one for one in files if one.name in wanted]
