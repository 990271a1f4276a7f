"""Hugging Face hub: files of a repository, the table of recommended models, and typed errors.

A file is described by its size, SHA-256 and commit before any byte is downloaded. ``select_file``
picks the GGUF file that a name means, in all its parts. Short names of models come from
``recommended.toml``. ``huggingface_hub`` is imported when it is first used, with telemetry off and
small chunks. Downloads nothing; ``download`` does.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, TypeAdapter

from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.requirements import format_bytes, split_parts


class HubError(DataError):
    """A hub cannot be reached, or what came from it is not what it lists."""


def proxy_variables(environment: Mapping[str, str]) -> str:
    """Return the variables that name proxies, without their values; ``""`` where there are none."""
    named = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
    return ", ".join(
        sorted(key for key in environment if key.upper() in named and environment[key])
    )


def status_error(host: str, what: str, status: int, retry_after: str | None) -> HubError:
    """Return the error for a status that is neither success nor a matter of rights.

    ``retry_after`` is the header of that name; only a number of seconds is passed on.
    """
    wait = f"in {retry_after} seconds" if retry_after and retry_after.isdecimal() else "later"
    limited = "it is asked too often; " if status == 429 else ""
    account = ", or set HF_TOKEN: an account may ask more often" if status == 429 else ""
    return HubError(
        f"{host} answered {status} for {what}", hint=f"{limited}try again {wait}{account}"
    )


@contextlib.contextmanager
def translate_errors(what: str, endpoint: str | None) -> Iterator[None]:
    """Tell what a hub answers about ``what`` in our words; an error while it sends passes.

    Raises:
        NotFoundError: It is not there, or only for others.
        HubError: The hub refuses, fails, cannot be reached, or answers as no hub does.
    """
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with
    from huggingface_hub import constants, errors  # noqa: PLC0415 - heavy

    hub = endpoint or constants.ENDPOINT
    login = "hf auth login, or set HF_TOKEN, with an account that may read it"
    try:
        yield
    except errors.HFValidationError:  # a ValueError about what was asked, not about an answer
        raise
    except errors.OfflineModeIsEnabled:
        raise HubError(
            f"{what} cannot be pulled: HF_HUB_OFFLINE is set",
            hint="unset it, or bring the file yourself: toolsrv model use FILE, or --file FILE of "
            "toolsrv catalog pull and recordings pull",
        ) from None
    except errors.GatedRepoError:
        raise NotFoundError(
            f"{what} may be read only by those whom its owner lets in",
            hint=f"ask for access on its page on {hub}, then: {login}",
        ) from None
    except (
        errors.RepositoryNotFoundError,
        errors.RevisionNotFoundError,
        errors.RemoteEntryNotFoundError,
    ):
        raise NotFoundError(
            f"{hub} has no {what}, or it is private",
            hint=f"check the spelling; if it is private: {login}",
        ) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise HubError(f"{hub} answered {status} for {what}", hint=login) from None
        raise status_error(hub, what, status, error.response.headers.get("retry-after")) from None
    except (httpx2.ConnectError, httpx2.ProxyError, httpx2.InvalidURL) as error:
        by = proxy_variables(os.environ)
        raise HubError(
            f"{hub} cannot be reached: {error or type(error).__name__}",
            hint="check the connection"
            + (f", the proxy ({by})" if by else "")
            + ", and HF_ENDPOINT if it is set",
        ) from None
    except (
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
    ) as error:  # as it takes an answer apart
        raise HubError(
            f"{hub} answered with something that is no hub's when asked for {what}",
            hint="check HF_ENDPOINT if it is set, and whether a proxy or a login page answers",
        ) from error


CHUNK_BYTES = 64 * 1024
"""So much at most is lost where a connection breaks."""


def configure() -> None:
    """Set it up for this process; once or often.

    Raises:
        HubError: The proxy that the environment names cannot be used.
    """
    from huggingface_hub import constants  # noqa: PLC0415 - heavy

    _check_proxy_variables()

    # What HF_HUB_DISABLE_TELEMETRY sets. Else each process tells which programs run it, and asks
    # the hub before its first request which there are: one damaged answer, which is kept for a
    # day, makes every request after it fail.
    constants.HF_HUB_DISABLE_TELEMETRY = True
    constants.DOWNLOAD_CHUNK_SIZE = CHUNK_BYTES


def _check_proxy_variables() -> None:
    """Refuse proxies that no client can be made for, before huggingface_hub makes one."""
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with

    if not proxy_variables(os.environ):
        return
    try:
        httpx2.Client().close()
    except ImportError:
        raise HubError(
            f"a SOCKS proxy is set ({proxy_variables(os.environ)}), and the package socksio is not "
            "installed",
            hint="pip install socksio, or set an HTTP proxy, or unset the variable",
        ) from None
    except (ValueError, httpx2.InvalidURL):  # its message may hold a password
        raise HubError(
            f"the proxy of the environment cannot be used ({proxy_variables(os.environ)})",
            hint="write it as http://HOST:PORT or socks5://HOST:PORT, or unset the variable",
        ) from None


RepoKind = Literal["model", "dataset"]


class RemoteFile(BaseModel):
    """A file in a repository, or at a web address (``repo``, with its ``etag``).

    ``sha256`` is None where nobody tells one; ``commit`` changes with the content; ``place`` is where
    a web address leads to.
    """

    model_config = ConfigDict(frozen=True)

    repo: str
    name: str
    size_bytes: int
    sha256: str | None
    commit: str
    kind: RepoKind = "model"
    etag: str = ""
    place: str = ""


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

    configure()
    try:
        with translate_errors(repo, endpoint):
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


def select_file(repo: str, files: list[RemoteFile], name: str | None) -> list[RemoteFile]:
    """Return the file to bring, in all its parts: the named one, or the only one.

    Raises:
        NotFoundError: There is no such file.
        UsageError: There are several to choose from; lists them with their sizes.
    """
    models = [one for one in files if split_parts(Path(one.name))[0].as_posix() == one.name]
    listed = ", ".join(f"{one.name} ({format_bytes(one.size_bytes)})" for one in models)
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
    wanted = {one.as_posix() for one in split_parts(Path(chosen[0].name))}
    return [one for one in files if one.name in wanted]


_SHA256 = re.compile(r"[0-9a-f]{64}")
MAIN_REVISION = "main"


def etag_sha256(etag: str | None) -> str | None:
    """Return the SHA-256 that an ETag is, None where it is something else (a git hash)."""
    return etag if etag and _SHA256.fullmatch(etag) else None


def remote_file(
    repo: str,
    name: str,
    *,
    kind: RepoKind = "model",
    revision: str = MAIN_REVISION,
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

    configure()
    what = f"{repo}:{name}"
    try:
        with translate_errors(what, endpoint):
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
        sha256=etag_sha256(found.etag),
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

    configure()
    try:
        with translate_errors(repo, endpoint):
            return licence_of(HfApi(endpoint=endpoint).dataset_info(repo).tags or ())
    except httpx2.TransportError as error:
        raise HubError(
            f"the connection broke while {repo} was asked for: {error or type(error).__name__}",
            hint="try again",
        ) from error


QuantType = Literal["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "F16"]

_SMALL = frozenset(
    {
        "config.json",
        "tokenizer.model",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "generation_config.json",
    }
)
_SAFETENSORS, _TORCH = ".safetensors", ".bin"


class RecommendedModel(BaseModel):
    """A model for tool calls on a machine with ``memory_gb`` GB.

    ``file`` is a GGUF file of ``repo``; without one the repository is a checkpoint, which
    ``profile`` converts and ``type`` quantises.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    memory_gb: int
    repo: str
    file: str = ""
    profile: str = ""
    type: QuantType = "Q4_K_M"
    licence: str
    note: str


@functools.cache
def recommended_models() -> tuple[RecommendedModel, ...]:
    """Return the table, by memory."""
    text = files("toolsrv_runtime.hub").joinpath("recommended.toml").read_text("utf-8")
    found = TypeAdapter(list[RecommendedModel]).validate_python(tomllib.loads(text)["model"])
    return tuple(sorted(found, key=lambda one: one.memory_gb))


def find_recommended(text: str) -> RecommendedModel | None:
    """Return the model that a short name stands for, in any case of letters; else None."""
    return next((one for one in recommended_models() if one.name == text.lower()), None)


def checkpoint_files(repo: str, found: list[RemoteFile]) -> list[RemoteFile]:
    """Return what a conversion needs of a checkpoint's files, small ones first.

    Of weights in two forms safetensors are taken.

    Raises:
        DataError: The repository holds no checkpoint.
    """
    whole = [one for one in found if "/" not in one.name]
    weights = [one for one in whole if one.name.endswith(_SAFETENSORS)] or [
        one for one in whole if one.name.endswith(_TORCH) and one.name.startswith("pytorch_model")
    ]
    small = [one for one in whole if one.name in _SMALL or one.name.endswith(".index.json")]
    if not weights or not any(one.name == "config.json" for one in small):
        raise DataError(
            f"{repo} holds no checkpoint: no config.json, or no weights",
            hint="look at its page on the hub",
        )
    return small + weights
