"""Model card: what a model is, was made of and achieves, for programs and people.

It lists the versions of the libraries that made it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.files import open_atomic_text


def library_versions(*packages: str) -> dict[str, str]:
    """Return the versions of toolsrv, Python and ``packages``; "unknown" where not installed."""
    return {"toolsrv": _installed_version("toolsrv"), "python": platform.python_version()} | {
        name: _installed_version(name) for name in packages
    }


def _installed_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


Json = dict[str, Any]

_HINT = "give what --json of an evaluation printed: a JSON object of names and values"


def made_hash(made: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the part of a card that its model's file names."""
    text = json.dumps(made, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_figures(files: Sequence[Path]) -> Json:
    """Return the figures of files by the files' names without endings.

    Raises:
        UsageError: Two files of one name.
        DataError: A file that cannot be read or holds no JSON object.
    """
    found: Json = {}
    for path in files:
        if path.stem in found:
            raise UsageError(
                f"two files of figures are called {path.stem!r}", hint="give them other names"
            )
        try:
            figures = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise DataError(
                f"cannot read the figures in {str(path)!r}: {error.strerror}", hint=_HINT
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"the figures in {str(path)!r} are not JSON: {error}", hint=_HINT
            ) from None
        if not isinstance(figures, dict):
            raise DataError(f"the figures in {str(path)!r} are no JSON object", hint=_HINT)
        found[path.stem] = figures
    return found


def write_card(model: Path, made: Mapping[str, Any], file: Json, figures: Json) -> list[Path]:
    """Write the card of the model file ``model`` beside it and return its two files.

    They are called as it is, with .card.json and .card.md for .gguf; size and SHA-256 are added
    to ``file``.
    """
    with model.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    about = {"name": model.name, "bytes": model.stat().st_size, "sha256": digest} | file
    card = {"made": dict(made), "made_sha256": made_hash(made), "file": about, "figures": figures}
    stem = model.name.removesuffix(".gguf")
    files = [model.with_name(f"{stem}.card{end}") for end in (".json", ".md")]
    texts = (json.dumps(card, indent=2, ensure_ascii=False) + "\n", markdown(card))
    for path, text in zip(files, texts, strict=True):
        with open_atomic_text(path) as written:
            written.write(text)
    return files


def markdown(card: Mapping[str, Any]) -> str:
    """Return a card for people."""
    made, file = card["made"], card["file"]
    parts = [f"# {made['name']}", made["what"]]
    facts = {key: made[key] for key in ("parameters", "context", "license") if made.get(key)}
    parts.append(_table({**facts, **made.get("shape", {})}))
    for title, key in (
        ("Training", "training"), ("Data", "data"), ("Held-out rows", "held_out"),
        ("Versions", "versions"),
    ):  # fmt: skip
        if made.get(key):
            parts += [f"## {title}", _table(made[key])]
    parts += ["## File", _table({**file, "made_sha256": card["made_sha256"]})]
    for name, figures in card["figures"].items():
        parts += [f"## Figures: {_cell(name)}", _table(figures)]
    if not card["figures"]:
        parts += ["## Figures", "Not evaluated."]
    return "\n\n".join(parts) + "\n"


def _table(values: Mapping[str, Any]) -> str:
    rows = [f"| {_cell(key)} | {_cell(value)} |" for key, value in _flat(values)]
    return "\n".join(["| | |", "|---|---|", *rows])


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values, those of mappings in mappings by ``outer.inner``."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        value = json.dumps(value, ensure_ascii=False)
    return " ".join(str(value).split()).replace("|", "\\|")
