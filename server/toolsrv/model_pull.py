"""Bring a GGUF file from a hub and put it on the list of models.

How each file is brought, with which progress, is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from toolsrv.downloads import endpoint
from toolsrv.model_list import Entry, ModelList
from toolsrv_registry.errors import UsageError
from toolsrv_registry.file_names import portable_name

if TYPE_CHECKING:
    from toolsrv_runtime.hub import RemoteFile

Bring = Callable[[list["RemoteFile"], Path], list[Path]]
"""Bring the parts of a model into a folder and return their paths."""


def parse_repository(text: str) -> tuple[str, str]:
    """Return repository and file of ``OWNER/NAME[:FILE]``; the file is "" where none is named.

    Raises:
        UsageError: it names no repository.
    """
    repo, _, file = text.partition(":")
    if "/" not in repo:
        raise UsageError(
            f"there is no short name {repo!r} of a model",
            hint="see toolsrv model pull --list, or name a repository: OWNER/NAME[:FILE]",
        )
    return repo, file


def model_folder(models: ModelList, repo: str) -> Path:
    """Return the folder that the files of a repository lie in."""
    return models.folder.joinpath(*map(portable_name, repo.split("/")))


def pull_gguf(models: ModelList, repo: str, file: str, name: str | None, bring: Bring) -> Entry:
    """Bring the GGUF file of a repository, in all its parts, and return its entry on the list.

    The entry has no ``sha256`` where the hub lists none: then only the size was checked. Blocks.

    Raises:
        UsageError: several files fit, or the name stands for another file.
        NotFoundError, DataError, BusyError: as ``hub.download.pull``.
    """
    from toolsrv_runtime.hub import gguf_files, select_file
    from toolsrv_runtime.hub.download import file_name

    chosen = select_file(repo, gguf_files(repo, endpoint=endpoint()), file or None)
    folder = model_folder(models, repo)
    first = chosen[0]
    if name is not None:
        models.check_name(name, folder / file_name(first))
    path = bring(chosen, folder)[0]
    source = f"{repo}:{first.name}@{first.commit[:12]}"
    return models.add(path, source=source, sha256=first.sha256, name=name)
