"""Whether a place holds an earlier export of a catalog: what an export may replace.

A folder or an archive in ``export``'s layout and nothing besides. Reads names, and the first tool.
"""

from __future__ import annotations

import json
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from toolsrv_catalogs.sources import FILE_LIMIT

ROOT = "toolenv"
"""The folder in an archive that holds the layout."""
PARTS = ("tools", "response_examples")
ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")
_DAMAGE = (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, tarfile.TarError)


def is_export(path: Path) -> bool:
    """Whether only an earlier export is at ``path``, or an empty folder; a link never is."""
    if path.is_symlink():
        return False
    try:
        if not path.name.lower().endswith(ARCHIVES):
            return path.is_dir() and _all_ours(_in_folder(path), "")
        return path.is_file() and _all_ours(_in_archive(path), f"{ROOT}/")
    except _DAMAGE:
        return False


def _all_ours(members: Iterator[tuple[str, bytes]], root: str) -> bool:
    """Whether every (name, beginning of the content) is of the layout, and the first is a tool."""
    first = True
    for name, content in members:
        parts = PurePosixPath(name.removeprefix(root)).parts
        if not name.startswith(root) or len(parts) != 3 or parts[0] not in PARTS:
            return False
        if not name.endswith(".json") or (first and not _is_document(content)):
            return False
        first = False
    return True


def _is_document(content: bytes) -> bool:
    document: Any = json.loads(content)
    return isinstance(document, dict) and isinstance(document.get("api_list"), list)


def _in_folder(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what is in a folder; only the first file is read. Folders without a file come too."""
    read = False
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        if not folders and not files and here != root:
            links.append(".")
        for name in [*links, *files]:
            path = here / name
            ordinary = path.is_file() and not path.is_symlink()
            fits = ordinary and not read and path.stat().st_size <= FILE_LIMIT
            content = path.read_bytes() if fits else b""
            read = read or fits
            yield path.relative_to(root).as_posix() + "/" * (not ordinary), content


def _in_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what is in an archive; only the first file is read."""
    read = False
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as zipped:
            for info in zipped.infolist():
                fits = not read and info.file_size <= FILE_LIMIT
                yield info.filename, zipped.read(info) if fits else b""
                read = True
        return
    with tarfile.open(path) as packed:
        for member in packed:
            fits = member.isfile() and not read and member.size <= FILE_LIMIT
            file = packed.extractfile(member) if fits else None
            yield member.name + "/" * (not member.isfile()), file.read() if file else b""
            read = True
