"""Export a catalog in ToolBench's layout: a folder or an archive, whole or not at all.

An earlier export may be replaced; any other content at the target stays and is an error.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from toolsrv_catalogs.layout import schema_document, tool_document
from toolsrv_catalogs.sources import FILE_LIMIT
from toolsrv_catalogs.text import escaped
from toolsrv_registry import names
from toolsrv_registry.api import Catalog, Tool
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.file_names import portable_name

EXPORT_ROOT = "toolenv"
"""The folder in an archive that holds the layout."""
EXPORT_PARTS = ("tools", "response_examples")
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
_DAMAGE = (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, tarfile.TarError)


def is_export(path: Path) -> bool:
    """Whether only an earlier export is at ``path``, or an empty folder; a link never is."""
    if path.is_symlink():
        return False
    try:
        if not path.name.lower().endswith(ARCHIVE_SUFFIXES):
            return path.is_dir() and _is_our_folder(_in_folder(path), "")
        return path.is_file() and _is_our_folder(_in_archive(path), f"{EXPORT_ROOT}/")
    except _DAMAGE:
        return False


def _is_our_folder(members: Iterator[tuple[str, bytes]], root: str) -> bool:
    """Whether every (name, beginning of the content) is of the layout, and the first is a tool."""
    first = True
    for name, content in members:
        parts = PurePosixPath(name.removeprefix(root)).parts
        if not name.startswith(root) or len(parts) != 3 or parts[0] not in EXPORT_PARTS:
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


_STEM_BYTES = 200


def export_catalog(catalog: Catalog, path: Path, *, overwrite: bool = False) -> int:
    """Write a catalog to ``path``; return the number of files in it.

    An archive where the name ends in ``.tar.gz``, ``.tgz``, ``.tar`` or ``.zip``, else a folder.
    ``overwrite`` replaces an earlier export, and nothing else.

    Raises:
        UsageError: there is something at ``path`` already.
        DataError: it cannot be written.
    """
    if path.exists() or path.is_symlink():
        if not is_export(path):
            raise UsageError(
                f"{str(path)!r} is there already, and is no export of a catalog",
                hint="name a new place: --force replaces only what an earlier export wrote",
            )
        if not overwrite:
            raise UsageError(
                f"{str(path)!r} is there already", hint="name a new place, or use --force"
            )
    files = list(_files(catalog))
    name = path.name.lower()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(ARCHIVE_SUFFIXES):
            _archive(files, path)
        else:
            _folder(files, path)
    except OSError as error:
        raise DataError(
            f"cannot write {str(path)!r}: {error.strerror or error}", hint="name another place"
        ) from error
    return len(files)


def _files(catalog: Catalog) -> Iterator[tuple[str, bytes]]:
    """Yield (path inside the layout, content)."""
    taken: set[str] = set()
    for tool in catalog.tools:
        wanted = f"{_component(tool.category)}/{_component(_stem(tool))}"
        place, number = wanted, 1
        while place.casefold() in taken:  # of Windows and macOS: they fold case
            number += 1
            place = f"{wanted}_{number}"
        taken.add(place.casefold())
        yield f"tools/{place}.json", _json(tool_document(tool))
        if (schemas := schema_document(tool)) is not None:
            yield f"response_examples/{place}.json", _json(schemas)


def _stem(tool: Tool) -> str:
    return str(tool.extra.get("stem") or names.readable_name(tool.name) or "unnamed")


def _component(name: str) -> str:
    """Return a name that is one path component on any system."""
    safe = portable_name(name.lstrip(".")).encode()[:_STEM_BYTES].decode(errors="ignore")
    return portable_name(safe.strip()) or "unnamed"


def _json(document: dict[str, Any]) -> bytes:
    return escaped(json.dumps(document, ensure_ascii=False, indent=1)).encode() + b"\n"


def _folder(files: list[tuple[str, bytes]], path: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name[:80]}-", dir=path.parent))
    try:
        for name, content in files:
            place = fresh / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        fresh.chmod(0o755)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name[:80]}-", dir=path.parent))
            path.rename(old / path.name)
            fresh.rename(path)
            shutil.rmtree(old)
        else:
            fresh.rename(path)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _archive(files: list[tuple[str, bytes]], path: Path) -> None:
    number, name = tempfile.mkstemp(prefix=f".{path.name[:80]}-", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            if path.name.lower().endswith(".zip"):
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
                    for inside, content in files:
                        packed.writestr(zipfile.ZipInfo(f"{EXPORT_ROOT}/{inside}"), content)
            else:
                _tar(files, file, plain=path.name.lower().endswith(".tar"))
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(0o644)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _tar(files: list[tuple[str, bytes]], file: Any, *, plain: bool) -> None:
    with tarfile.open(fileobj=file, mode="w" if plain else "w:gz") as packed:
        for inside, content in files:
            header = tarfile.TarInfo(f"{EXPORT_ROOT}/{inside}")
            header.size = len(content)
            packed.addfile(header, io.BytesIO(content))
