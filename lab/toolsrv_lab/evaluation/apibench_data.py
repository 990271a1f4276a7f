"""APIBench's files: a corpus of APIs per domain, and questions with the API that answers each.

Names as in Gorilla's repository: ``<domain>_api.jsonl`` in the folder or its ``api/``,
``<domain>_eval.json`` (of TensorFlow Hub also ``tensorflow_eval.json``) in the folder or its
``apibench/``; both are JSON lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from toolsrv_lab.evaluation.apibench_calls import Domain, Pattern, pattern
from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.files import read_text

HUBS: Mapping[Domain, str] = {
    "torchhub": "PyTorch Hub",
    "tensorflowhub": "TensorFlow Hub",
    "huggingface": "Hugging Face",
}
"""What a domain is called to a model."""

_SHORT: Mapping[Domain, str] = {
    "torchhub": "torchhub", "tensorflowhub": "tensorflow", "huggingface": "huggingface",
}  # fmt: skip
_HINT = "give Gorilla's files: DOMAIN_api.jsonl and DOMAIN_eval.json in one folder, with --data"
_BYTES = 64 << 20
_SHOWN = ("domain", "framework", "functionality", "api_call", "api_arguments", "performance",
          "description")  # fmt: skip
_FIELD_LIMIT = 400
_START = re.compile(r"\bInstruction['\"]?\s*:\s*")
_END = re.compile(r"(?:\n\s*#+\s*|['\"]?,\s*['\"])(?:Output|Input)\b")


@dataclass(frozen=True)
class CorpusApi:
    """One API of a corpus, as its file has it."""

    fields: Mapping[str, Any]

    @property
    def call(self) -> str:
        """The Python call that loads it."""
        return str(self.fields["api_call"])

    @property
    def domain(self) -> str:
        """What it is for; a reply is right when its API's is the question's."""
        return str(self.fields["domain"])

    @cached_property
    def document(self) -> str:
        """What a model reads of it: JSON, long fields cut."""
        shown = {name: _cut(self.fields[name]) for name in _SHOWN if self.fields.get(name)}
        return json.dumps(shown, ensure_ascii=False)


@dataclass(frozen=True)
class Corpus:
    """The APIs of a domain in the file's order, and the pattern of each."""

    domain: Domain
    apis: tuple[CorpusApi, ...]

    @cached_property
    def patterns(self) -> tuple[Pattern | None, ...]:
        """What names each API."""
        return tuple(pattern(one.call, self.domain) for one in self.apis)


@dataclass(frozen=True)
class Question:
    """An instruction, and the API that it was written for. ``id``: its line, from 1."""

    id: str
    text: str
    api: CorpusApi


def corpus_file(folder: Path, domain: Domain) -> Path:
    """Return where a folder has a domain's corpus. Raises NotFoundError."""
    return _found(folder, [f"{domain}_api.jsonl", f"api/{domain}_api.jsonl"])


def questions_file(folder: Path, domain: Domain) -> Path:
    """Return where a folder has a domain's evaluation set. Raises NotFoundError."""
    names = dict.fromkeys((f"{domain}_eval.json", f"{_SHORT[domain]}_eval.json"))
    return _found(folder, [*names, *(f"apibench/{name}" for name in names)])


def read_corpus(path: Path, domain: Domain) -> Corpus:
    """Return a corpus.

    Raises:
        NotFoundError: there is no such file.
        DataError: it is none; says where.
    """
    apis = tuple(_api(row, path, at) for at, row in _rows(path))
    if not apis:
        raise DataError(f"{path} has no APIs", hint=_HINT)
    return Corpus(domain, apis)


def read_questions(path: Path, corpus: Corpus) -> list[Question]:
    """Return the questions of an evaluation set.

    An entry's ``api_data`` is its API; where there is none, the corpus entry with its ``api_call``.

    Raises:
        NotFoundError: there is no such file.
        DataError: it is no such set; says where.
    """
    by_call: dict[str, CorpusApi] = {}
    for one in corpus.apis:
        by_call.setdefault(one.call, one)
    found = []
    for at, row in _rows(path):
        api = (
            _api(row["api_data"], path, at)
            if "api_data" in row
            else by_call.get(str(row.get("api_call")))
        )
        text = _instruction(row)
        if api is None or not text:
            lack = "instruction" if api else "API of the corpus"
            raise DataError(f"{path}, line {at}: no {lack}", hint=_HINT)
        found.append(Question(str(at), text, api))
    if not found:
        raise DataError(f"{path} has no questions", hint=_HINT)
    if all(one.api.call not in by_call for one in found):
        raise DataError(
            f"{path} asks for no API of {corpus.domain}", hint="name the evaluation set of --domain"
        )
    return found


def _instruction(row: Mapping[str, Any]) -> str:
    """Return what is asked; the example's output, which follows it, holds the answer."""
    key = next((one for one in ("instruction", "question", "code") if one in row), "")
    value = row.get(key)
    text = value if isinstance(value, str) else ""
    if key != "code":
        return text.strip()
    start = _START.search(text)
    if start is None:
        return ""
    end = _END.search(text, start.end())
    return text[start.end() : end.start() if end else None].strip().strip("'\"")


def _api(value: Any, path: Path, at: int) -> CorpusApi:
    named = isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("api_call", "domain")
    )
    if not named:
        raise DataError(f"{path}, line {at}: no API with api_call and domain", hint=_HINT)
    return CorpusApi(value)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for at, line in enumerate(read_text(path, _BYTES, hint=_HINT).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = wellformed.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {at}: not JSON: {error}", hint=_HINT) from None
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {at}: not an object", hint=_HINT)
        yield at, row


def _found(folder: Path, names: list[str]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise NotFoundError(f"{folder} has no {names[0]}", hint=_HINT)


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= _FIELD_LIMIT else f"{text[:_FIELD_LIMIT]}…"
