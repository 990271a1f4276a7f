"""What a tool answered, as a response: structured content, texts, images, resources.

Pure. Nothing of an answer is dropped; a text that only repeats the structured content is. Bytes
become files, and their size stands in their place.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls import body
from toolsrv_runtime.calls.attachment import Attachment
from toolsrv_runtime.calls.exchange import Exchange

_ERROR_LENGTH = 300


def exchange_of(answer: Mapping[str, Any], limit: int, secrets: Collection[str]) -> Exchange:
    """Return what a tool's answer comes to.

    Args:
        answer: the result of ``tools/call``, as JSON.
        limit: bytes of it that are taken.
        secrets: values that are taken out.
    """
    if too_deep(answer):
        return Exchange("not_json", 200, None, "the response is nested too deep")
    files: list[Attachment] = []
    response = _without(_response(answer, files), secrets)
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    if len(text.encode(errors="replace")) > limit:
        shown = text[: body.SHOWN_OF_TOO_LARGE]
        return Exchange("too_large", 200, shown, f"the response has more than {limit:,} bytes")
    if sum(one.size for one in files) > limit:
        return Exchange("too_large", 200, response, f"its files have more than {limit:,} bytes")
    kept = tuple(one for one in files if not one.holds(secrets))
    if answer.get("isError") is True:
        said = clean(response if isinstance(response, str) else json.dumps(response), _ERROR_LENGTH)
        return Exchange("bad_arguments", 422, response, f"the tool reports an error: {said}")
    return Exchange("ok", 200, response, "", files=kept)


def _response(answer: Mapping[str, Any], files: list[Attachment]) -> Any:
    blocks = answer.get("content")
    content = [_part(one, files) for one in blocks] if isinstance(blocks, list) else []
    structured = answer.get("structuredContent")
    if structured is not None:
        rest = [one for one in content if not _repeats(one, structured)]
        return {"structuredContent": structured, "content": rest} if rest else structured
    if len(content) == 1 and isinstance(content[0], str):
        return _value(content[0])
    return content or ""


def _part(block: Any, files: list[Attachment]) -> Any:
    """Return a block of content: a text as it is, of others what they say; bytes go to ``files``."""
    if not isinstance(block, dict):
        return block
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return block["text"]
    told = {key: one for key, one in block.items() if key not in ("annotations", "_meta")}
    resource = told.get("resource")
    if isinstance(resource, dict):
        return told | {"resource": _sized(resource, "blob", files)}
    return _sized(told, "data", files)


def _sized(block: dict[str, Any], key: str, files: list[Attachment]) -> dict[str, Any]:
    """Return what holds bytes in base64 with their size instead, and keep them as a file."""
    try:
        content = base64.b64decode(block[key], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        return block
    name = str(block.get("uri") or block.get("name") or "").rpartition("/")[2]
    files.append(Attachment.of(content, str(block.get("mimeType") or ""), name))
    return {name: one for name, one in block.items() if name != key} | {"bytes": len(content)}


def _repeats(part: Any, structured: Any) -> bool:
    if not isinstance(part, str):
        return False
    value = _value(part)
    if value == structured:
        return True
    # A plain result is wrapped in an object, because structured content had to be one.
    wrapped = list(structured.values()) if isinstance(structured, dict) else []
    return wrapped in ([value], [part])


def _value(text: str) -> Any:
    """Return the JSON object or list that a text spells, else the text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _without(value: Any, secrets: Collection[str]) -> Any:
    if not secrets:
        return value
    if isinstance(value, str):
        return body.without(value, secrets)
    if isinstance(value, dict):
        return {body.without(key, secrets): _without(one, secrets) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_without(one, secrets) for one in value]
    return value
