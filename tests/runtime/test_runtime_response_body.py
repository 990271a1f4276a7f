"""Bodies as bytes: kinds of files, their names, compression, charsets, keys, and large ones on disk."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from toolsrv_runtime.calls import result
from toolsrv_runtime.calls.response_body import (
    CHUNK_BYTES,
    NAME_LIMIT,
    OCTET_STREAM,
    Attachment,
    EncodingError,
    content_disposition_filename,
    detect_media_type,
    is_redactable,
    iter_decompressed,
    parse_body,
    read_body,
    redact,
    safe_filename,
)
from toolsrv_runtime.calls.result import Spool, Spooled, SpoolError, read_or_spool

PNG, OGG, ZIP, PDF = b"\x89PNG\r\n\x1a\n--", b"OggS\x00--", b"PK\x03\x04--", b"%PDF-1.7"
WOFF = b"wOFF\x00\x01\x00\x00"


@pytest.mark.parametrize(
    ("content", "declared", "media"),
    [
        (PNG, "image/png", "image/png"),
        (PNG, "image/jpeg; q=1", "image/png"),
        (PNG, "application/pdf", "image/png"),
        (PNG, "", "image/png"),
        (PNG, "text/plain", "image/png"),
        (PNG, "application/json", "image/png"),
        (PNG, "no media type", "image/png"),
        (OGG, "video/ogg", "video/ogg"),  # containers hold either
        (OGG, "audio/x-own", "audio/x-own"),
        (OGG, "image/gif", "audio/ogg"),
        (ZIP, "application/vnd.own+x", "application/vnd.own+x"),  # many formats are a ZIP within
        (ZIP, "image/svg", "application/zip"),
        (ZIP, "application/octet-stream", "application/zip"),
        (WOFF, "application/font-own", "application/font-own"),
        (b"\x01\x02", "", OCTET_STREAM),
        (b"\x01\x02", "text/html", OCTET_STREAM),
        (b"\x01\x02", "Application/X-Own", "application/x-own"),
    ],
)
def test_the_bytes_of_a_file_decide_where_its_declared_type_is_wrong(
    content: bytes, declared: str, media: str
) -> None:
    assert detect_media_type(content, declared) == media


@pytest.mark.parametrize(
    ("name", "media", "safe"),
    [
        ("report.pdf", "image/png", "report.pdf"),
        ("report", "application/pdf", "report.pdf"),
        ("report.", "application/pdf", "report.pdf"),
        ("report.a b", "application/pdf", "report.a b.pdf"),
        ("report.12345678901", "application/pdf", "report.12345678901.pdf"),
        (".pdf", "application/pdf", "pdf.pdf"),
        ("", "application/x-none", "file.bin"),
        ("a" * 300 + ".txt", "text/plain", "a" * (NAME_LIMIT - 4) + ".txt"),
        ("a" * 300, "application/x-none", "a" * (NAME_LIMIT - 4) + ".bin"),
    ],
)
def test_a_file_has_a_name_of_limited_length_with_a_suffix(
    name: str, media: str, safe: str
) -> None:
    assert safe_filename(name, media) == safe


def test_a_file_says_how_large_it_is_and_takes_bytes_as_base64_alone() -> None:
    file = Attachment.from_bytes(PNG * 200, "", "a  \u202eb.png")
    assert (file.size, file.summary, file.name) == (2_000, "2,000 bytes, image/png", "a b.png")
    assert file.content == PNG * 200
    assert file.contains_any(["", "PNG"])
    assert not file.contains_any(["", "GIF"])
    with pytest.raises(ValidationError, match="is no base64"):
        Attachment(blob="!")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('attachment; filename="a.png"', "a.png"),
        ("attachment; filename*=utf-8''%C3%A4.png; filename=b.png", "ä.png"),
        ("attachment; filename*0*=no-such'x'%E4; filename*1=b", "\xe4b"),
        ("attachment; name=a.png", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_file_is_read_from_its_header(header: str, name: str) -> None:
    assert content_disposition_filename(header) == name


@pytest.mark.parametrize("declared", ["text/plain; CharSet='ISO-8859-1'", "x/y; charset=latin-1"])
def test_the_charset_of_a_text_is_read_in_any_spelling(declared: str) -> None:
    body = parse_body("né".encode("latin-1"), httpx.Headers({"Content-Type": declared}),
                      too_large=False)  # fmt: skip
    assert (body.value, body.binary) == ("né", False)


def test_the_longest_of_the_keys_is_taken_out_first() -> None:
    keys = ("abcd", "abcdefgh", "xyz")
    assert redact("abcdefgh abcd xyz", keys) == redact("abcdefgh abcd xyz", keys[::-1])
    assert redact("abcdefgh abcd xyz", keys) == "[key] [key] xyz"
    assert [one for one in keys if is_redactable(one)] == ["abcd", "abcdefgh"]
    assert redact("a+b/c=&d a%2Bb%2Fc%3D%26d", ["a+b/c=&d"]) == "[key] [key]"


@pytest.mark.parametrize(
    ("too_large", "size", "said"),
    [
        (False, None, "binary, 10 bytes, image/png, not shown"),
        (True, None, "binary, more than 10 bytes, image/png, not shown"),
        (True, 2_000, "binary, 2,000 bytes, image/png, not shown"),
    ],
)
def test_the_size_of_a_file_is_told_as_far_as_it_is_known(
    too_large: bool, size: int | None, said: str
) -> None:
    body = parse_body(PNG, httpx.Headers(), too_large=too_large, size=size)
    assert (body.value, body.binary, body.too_large) == (said, True, too_large)
    assert (body.file is None) == too_large


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for one in self._pieces:
            yield one


def response(*pieces: bytes, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(200, headers=named, stream=Pieces(*pieces))


async def _all(got: httpx.Response) -> list[bytes]:
    return [one async for one in iter_decompressed(got)]


def test_a_body_comes_whole_in_bounded_pieces() -> None:
    assert asyncio.run(_all(response(b"a", b"b", b"c"))) == [b"a", b"b", b"c"]
    text = b"0123456789" * (CHUNK_BYTES // 4)
    packed = gzip.compress(text)
    middle = len(packed) // 2
    pieces = asyncio.run(_all(response(packed[:middle], packed[middle:], content_encoding="gzip")))
    assert b"".join(pieces) == text
    assert max(map(len, pieces)) <= CHUNK_BYTES
    for broken in (packed[:middle], b"no gzip"):
        with pytest.raises(EncodingError):
            asyncio.run(_all(response(broken, content_encoding="gzip")))


def test_a_body_is_read_up_to_its_limit_and_told_where_it_is_longer() -> None:
    packed = gzip.compress(b"x" * 10)
    for limit, more in ((9, True), (10, False), (11, False)):
        assert asyncio.run(read_body(response(b"x" * 5, b"x" * 5), limit)) == (
            b"x" * min(limit, 10),
            more,
        )
        plain = response(packed + b"", content_encoding="gzip")
        if limit >= len(packed):
            assert asyncio.run(read_body(plain, limit)) == (b"x" * 10, more)


def spooled(
    folder: Path, got: httpx.Response, *hidden: str, limit: int = 1_000, texts: bool = True
) -> tuple[bytes, Spooled | None, bool]:
    return asyncio.run(read_or_spool(got, 8, Spool(folder, limit, texts), hidden))


def test_a_large_body_is_written_to_a_part_file(tmp_path: Path) -> None:
    head = {"content_type": "text/plain; charset=utf-8", "content_disposition": "a; filename=x.txt"}
    body, part, more = spooled(tmp_path, response(b"12345", b"67890", b"abc", **head))
    assert (body, more) == (b"", False)
    assert part is not None
    assert (part.size, part.media, part.name) == (13, "text/plain", "x.txt")
    assert part.part.read_bytes() == b"1234567890abc"
    assert spooled(tmp_path, response(b"1234", b"5678")) == (b"12345678", None, False)
    assert spooled(tmp_path, response(b"12345", b"67890"), texts=False) == (b"12345678", None, True)
    large = response(b"12345", b"67890", content_length="2000")
    assert spooled(tmp_path, large) == (b"12345678", None, True)
    assert [one for one in tmp_path.iterdir() if one != part.part] == []


@pytest.mark.parametrize("pieces", [(b"12345s3cr", b"et-key---"), (b"1234567890", b"s3cret-key")])
def test_a_key_between_two_pieces_is_found_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: tuple[bytes, bytes]
) -> None:
    monkeypatch.setattr(result, "_WRITE_BYTES", 1)  # each piece is written for itself
    with pytest.raises(SpoolError, match="repeats a key"):
        spooled(tmp_path, response(*pieces), "abcd", "s3cret-key")
    assert list(tmp_path.iterdir()) == []


def test_a_body_that_grows_over_what_is_saved_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="more than 20 bytes"):
        spooled(tmp_path, response(b"x" * 10, b"x" * 11), limit=20)
    assert list(tmp_path.iterdir()) == []
    assert spooled(tmp_path, response(b"x" * 10, b"x" * 10), limit=20)[1] is not None


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be written to") as caught:
        spooled(tmp_path / "file", response(b"x" * 20))
    assert "free some space" in caught.value.hint
