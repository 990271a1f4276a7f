"""Whether a file is a pack of recordings: what an export of recordings may replace."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.recordings.pack import Manifest

_MANIFEST, _ENTRIES = "manifest.json", "entries.jsonl"
_MANIFEST_LIMIT = 1_000_000


def check_replaceable(path: Path, *, force: bool) -> None:
    """Refuse to write a pack over what is at ``path``; with ``force`` a pack may go.

    Raises:
        UsageError: something is there, and it is no pack or was not to be replaced.
    """
    if not path.is_file() and not path.is_symlink():
        return  # nothing, or what the writing itself refuses: a folder, a pipe
    if path.exists() and not _is_pack(path):
        raise UsageError(
            f"{path} is there already, and is no pack of recordings",
            hint="name a new file: --force replaces only what an earlier export wrote",
        )
    if not force:
        raise UsageError(f"{path} is there already", hint="name a new file, or use --force")


def _is_pack(path: Path) -> bool:
    """Whether a file has a pack's members and a manifest that an import would accept."""
    try:
        with zipfile.ZipFile(path) as pack:
            if sorted(pack.namelist()) != [_ENTRIES, _MANIFEST]:
                return False
            with pack.open(_MANIFEST) as file:
                Manifest.model_validate_json(file.read(_MANIFEST_LIMIT))
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return False  # pydantic's error is a ValueError; an encrypted member a RuntimeError
    return True
