"""Bodies of forms with the files in them, and files that calls brought, to download.

A file that a person has chosen is spooled: beyond a megabyte it lies on disk, without a name, and is
gone when it is closed. Its own name is a word that is sent with it and never a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from toolsrv.calls.files import kept_path
from toolsrv.plain import plain
from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.calls.response_body import guess_media_type
from toolsrv_runtime.calls.serialization import FILE_LIMIT, FileArgument, data_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from toolsrv.web.forms import FormField
    from toolsrv_runtime.outcome import KeptFile

MOST_BODY = 1024 * 1024
"""Bytes of a form without files, and of one field of any."""
MOST_UPLOAD = 4 * FILE_LIMIT
"""Bytes of a form with files."""
MOST_FIELDS = 1_000
MOST_FILES = 50
Uploads = dict[str, list[UploadFile]]
"""Files by the name of their field, or argument."""


@dataclass(frozen=True)
class Form:
    """A form that was sent; whoever reads it closes its files."""

    fields: dict[str, str] = field(default_factory=dict)
    files: Uploads = field(default_factory=dict)


async def read_form(request: Request, *, with_files: bool) -> Form | None:
    """Return a form, None where it is none or too large; with files only where they are taken.

    Raises:
        OSError: there is no room for its files.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data" and with_files:
        return await _multipart(request)
    if kind != "application/x-www-form-urlencoded":
        return None
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BODY:
            return None
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS
        )
    except ValueError:
        return None
    return Form({name: _lines(value) for name, value in pairs})


async def _multipart(request: Request) -> Form | None:
    async def pieces() -> AsyncGenerator[bytes, None]:
        total = 0
        async for piece in request.stream():
            total += len(piece)
            if total > MOST_UPLOAD:
                raise MultiPartException("too large")
            yield piece

    parser = MultiPartParser(
        request.headers, pieces(), max_files=MOST_FILES, max_fields=MOST_FIELDS,
        max_part_size=MOST_BODY,
    )  # fmt: skip
    try:
        items = (await parser.parse()).multi_items()
    except MultiPartException:
        return None
    form = Form()
    for name, value in items:
        if isinstance(value, UploadFile):
            form.files.setdefault(name, []).append(value)
        else:
            form.fields[name] = _lines(value)
    return form


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def close_files(files: Mapping[str, Sequence[UploadFile]]) -> None:
    """Remove files from memory and disk. Idempotent."""
    for one in every_file(files):
        one.file.close()


def every_file(files: Mapping[str, Sequence[UploadFile]]) -> Iterator[UploadFile]:
    """Yield the files of all fields."""
    for several in files.values():
        yield from several


def chosen_files(fields: Sequence[FormField], files: Uploads) -> Uploads:
    """Return the files of a form by the names of their arguments.

    Raises:
        UsageError: a file is too large, there are several where one is taken, or a text beside it.
    """
    found: Uploads = {}
    for one in fields:
        given = [file for file in files.get(one.file_key, ()) if file.filename or file.size]
        if one.kind != "file" or not given:
            continue
        if one.value.strip():
            raise UsageError(
                f"{one.name}: a file and a text were given", hint="leave one of them out"
            )
        if len(given) > 1 and not one.several:
            raise UsageError(f"{one.name}: {len(given)} files were given", hint="choose one")
        for file in given:
            if (file.size or 0) > FILE_LIMIT:
                raise UsageError(
                    f"{one.name}: {file_name(file)} has {file.size:,} bytes",
                    hint=f"a file of at most {FILE_LIMIT:,} bytes is taken",
                )
        found[one.name] = given
    return found


def file_name(file: UploadFile) -> str:
    """Return a file's name, without a path where a browser sends one."""
    return clean(re.split(r"[/\\]", file.filename or "")[-1], 200)


def file_arguments(fields: Sequence[FormField], chosen: Uploads) -> dict[str, str | list[str]]:
    """Return the arguments that files are, as ``data:`` URLs; a list where a list is taken. Blocks."""
    several = {one.name for one in fields if one.several}
    values = {name: [_data_url(file) for file in files] for name, files in chosen.items()}
    return {name: found if name in several else found[0] for name, found in values.items()}


def _data_url(file: UploadFile) -> str:
    file.file.seek(0)
    name = file_name(file)
    return data_url(FileArgument(file.file.read(FILE_LIMIT + 1), name, guess_media_type(name)))


MOST_KNOWN = 200
"""Files of calls that a session can download."""


def download(data_dir: Path, kept: KeptFile | None) -> Response:
    """Return a file that a call brought, to save and never to show.

    Raises:
        NotFoundError: it is not kept any more, or is not in the folder of such files.
    """
    path = None if kept is None else kept_path(data_dir, kept)
    if path is None:
        raise NotFoundError("this file is not kept any more", hint="call the API again")
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=plain(path.name),
        content_disposition_type="attachment",
        headers={"content-security-policy": "sandbox; default-src 'none'"},
    )
