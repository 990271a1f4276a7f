"""Text Case Studio: changing how text is written. Library: re, unicodedata."""

from __future__ import annotations

import re
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError, choice
from toolsrv_catalogs.offline.values.words import Text, fold, items, text_up_to

tool = Endpoints()
Short = Annotated[str, text_up_to(500)]
_CASES = ("upper", "lower", "title", "sentence", "camel", "snake", "kebab")


def _parts(text: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.findall(r"[^\W_]+", spaced)


@tool.get("/case")
def change_case(text: Short, case: Annotated[str, choice(*_CASES)]) -> Answer:
    return {"text": text, "case": case, "result": _cased(text, case)}


def _cased(text: str, case: str) -> str:
    parts = [part.lower() for part in _parts(text)]
    match case:
        case "upper":
            return text.upper()
        case "lower":
            return text.lower()
        case "title":
            return re.sub(r"\S+", lambda word: word[0][:1].upper() + word[0][1:].lower(), text)
        case "sentence":
            return text[:1].upper() + text[1:].lower()
        case "camel":
            return "".join(parts[:1] + [part.capitalize() for part in parts[1:]])
        case "snake":
            return "_".join(parts)
        case _:
            return "-".join(parts)


@tool.get("/slug")
def slugify(text: Short) -> Answer:
    return {"text": text, "slug": "-".join(re.findall(r"[a-z0-9]+", fold(text)))}


@tool.get("/reverse")
def reverse_text(
    text: Short, what: Annotated[str, choice("letters", "words")] = "letters"
) -> Answer:
    turned = text[::-1] if what == "letters" else " ".join(reversed(text.split()))
    return {"text": text, "reversed": turned}


@tool.get("/sort")
def sort_words(
    text: Short, order: Annotated[str, choice("ascending", "descending")] = "ascending"
) -> Answer:
    listed = items(text) if "," in text else text.split()
    listed.sort(key=lambda item: (fold(item), item), reverse=order == "descending")
    return {"text": text, "order": order, "sorted": (", " if "," in text else " ").join(listed)}


@tool.get("/extract")
def extract(text: Text, kind: Annotated[str, choice("emails", "links", "numbers")]) -> Answer:
    form = {
        "emails": r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}",
        "links": r"https?://[^\s<>\"']{1,500}",
        "numbers": r"-?[0-9]+(?:[.,][0-9]+)*",
    }[kind]
    found = [item.rstrip(".,;:!?)") for item in re.findall(form, text)]
    return {"kind": kind, "count": len(found), "found": found[:20]}


@tool.get("/acronym")
def acronym(text: Short) -> Answer:
    letters = "".join(part[0].upper() for part in re.findall(r"[^\W_]+", text))
    if not letters:
        raise ParameterError("text", "holds no words")
    return {"text": text, "acronym": letters}
