"""Codec Box: encodings, ciphers for play and digests. Library: base64, hashlib, urllib, zlib."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from typing import Annotated
from urllib.parse import quote, unquote

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError, choice, quoted
from toolsrv_catalogs.offline.values.number import whole
from toolsrv_catalogs.offline.values.words import Text, text_up_to

tool = Endpoints()
Encoded = Annotated[str, text_up_to(3000)]
_BINARY = re.compile(r"0[bB][01\s_]+")
_DIGESTS = ("md5", "sha1", "sha256", "sha512")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ParameterError("encoded", "decodes to bytes that are not UTF-8 text") from None


@tool.get("/base64/encode")
def base64_encode(text: Text) -> Answer:
    return {"text": text, "base64": base64.b64encode(text.encode()).decode()}


@tool.get("/base64/decode")
def base64_decode(encoded: Encoded) -> Answer:
    plain = re.sub(r"\s", "", encoded).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ParameterError("encoded", "not Base64 text") from None
    return {"encoded": encoded, "text": _text(data)}


@tool.get("/hex/encode")
def hex_encode(text: Text) -> Answer:
    return {"text": text, "hex": text.encode().hex()}


@tool.get("/hex/decode")
def hex_decode(encoded: Encoded) -> Answer:
    if _BINARY.fullmatch(encoded):
        raise ParameterError("encoded", f"{quoted(encoded)} is binary, not hexadecimal text")
    try:
        data = bytes.fromhex(encoded.removeprefix("0x"))
    except ValueError:
        raise ParameterError("encoded", "not hexadecimal text of whole bytes") from None
    return {"encoded": encoded, "text": _text(data)}


@tool.get("/url/encode")
def url_encode(text: Text) -> Answer:
    return {"text": text, "url_encoded": quote(text, safe="")}


@tool.get("/url/decode")
def url_decode(encoded: Encoded) -> Answer:
    return {"encoded": encoded, "text": unquote(encoded)}


@tool.get("/caesar")
def caesar(text: Text, shift: Annotated[int, whole(-25, 25)] = 13) -> Answer:
    def turned(match: re.Match[str]) -> str:
        start = ord("a") if match[0].islower() else ord("A")
        return chr(start + (ord(match[0]) - start + shift) % 26)

    return {"text": text, "shift": shift, "result": re.sub("[a-zA-Z]", turned, text)}


@tool.get("/hash")
def hash_text(text: Text, algorithm: Annotated[str, choice(*_DIGESTS)] = "sha256") -> Answer:
    digest = hashlib.new(algorithm, text.encode(), usedforsecurity=False)
    return {"text": text, "algorithm": algorithm, "hash": digest.hexdigest()}


@tool.get("/checksum")
def crc32(text: Text) -> Answer:
    return {"text": text, "crc32": f"{zlib.crc32(text.encode()):08x}"}
