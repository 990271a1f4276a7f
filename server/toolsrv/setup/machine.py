"""This machine for ``toolsrv setup``: cores, memory, GPU, disk, models of other programs.

Files are looked for where LM Studio, Ollama, llama.cpp and the hub's cache keep them; only their
headers are read. Servers on loopback are asked for their list of models and for nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.hub import RecommendedModel, recommended_models
from toolsrv_runtime.requirements import estimate_footprint, format_bytes

GB = 1_000_000_000
_CORE_GB = 4
"""GB of memory of a recommended model that one core without a GPU reads fast enough."""


@dataclass(frozen=True)
class MachineCapacity:
    """Cores of the processor, free bytes of memory, of the GPUs' memory and of the disk."""

    cores: int
    memory: int
    gpu: str
    gpu_memory: int
    disk: int

    @property
    def room(self) -> int:
        """The most that a model may take: of the GPU where there is one, else of the memory."""
        return max(self.memory, self.gpu_memory)

    @property
    def words(self) -> str:
        """It in one line."""
        gpu = f"{self.gpu} ({format_bytes(self.gpu_memory)} free)" if self.gpu else "no GPU in use"
        return (
            f"{self.cores} cores, {format_bytes(self.memory)} of memory free, {gpu}, "
            f"{format_bytes(self.disk)} of disk free"
        )

    def suggested(self) -> RecommendedModel | None:
        """Return the largest recommended model that fits, None where the least does not."""
        fitting = [
            one
            for one in recommended_models()
            if one.file
            and one.memory_gb * GB <= self.room
            and (self.gpu or one.memory_gb <= _CORE_GB * self.cores)
        ]
        return fitting[-1] if fitting else None


def measure_capacity(folder: Path) -> MachineCapacity:
    """Return what this machine has; ``folder`` says which disk. Loads llama.cpp for its GPUs."""
    from toolsrv_runtime.engine.hardware import devices
    from toolsrv_runtime.requirements import available_memory, physical_cores

    gpus = [one for one in devices() if one.kind in ("gpu", "igpu")]
    place = next(one for one in (folder, *folder.parents) if one.exists())
    return MachineCapacity(
        cores=physical_cores(),
        memory=available_memory() or 0,
        gpu=", ".join(one.description or one.name for one in gpus),
        gpu_memory=sum(one.free for one in gpus),
        disk=shutil.disk_usage(place).free,
    )


SERVERS: Mapping[str, str] = {
    "LM Studio": "http://127.0.0.1:1234/v1",
    "Ollama": "http://127.0.0.1:11434/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
    "vLLM": "http://127.0.0.1:8000/v1",
}
"""Programs that serve models, and where they listen unless told otherwise."""
ASK_S = 2.0
CELLS = 8192
"""Tokens of context that a model must have room for."""
VOCABULARY = 152_000
"""Of a model whose header does not say."""
BYTES_PER_CORE = 1_500_000_000
"""Weights that one core of a processor reads often enough: some 3 tokens a second."""
MOST_FILES = 500
_MODEL_LAYER = "application/vnd.ollama.image.model"
_MANIFEST_LIMIT = 1_000_000


@dataclass(frozen=True)
class FoundModel:
    """A model: ``value`` is what ``toolsrv model use`` takes. ``why_not`` is empty for one that fits.

    ``size`` is that of its weights in bytes, 0 for a server's.
    """

    value: str
    title: str
    size: int = 0
    why_not: str = ""


def best_model(found: Sequence[FoundModel]) -> FoundModel | None:
    """Return the largest file that fits, else the first server, else None."""
    fitting = [one for one in found if not one.why_not]
    files = sorted((one for one in fitting if one.size), key=lambda one: one.size)
    return files[-1] if files else next(iter(fitting), None)


def found_files(
    home: Path, environment: Mapping[str, str], room: int, cores: int
) -> list[FoundModel]:
    """Return the chat models in other programs' folders, the largest first.

    ``room`` is the memory there is in bytes, ``cores`` those of the processor, 0 with a GPU.
    """
    seen: dict[Path, FoundModel] = {}
    for path, title in _files(home, environment):
        real = path.resolve()
        if real not in seen and len(seen) < MOST_FILES:
            found = _inspect_file(path, title, room, cores)
            if found is not None:
                seen[real] = found
    return sorted(seen.values(), key=lambda one: -one.size)


def found_servers(servers: Mapping[str, str] = SERVERS) -> list[FoundModel]:
    """Return the servers that answer and offer a model, in their order. Blocks for ``ASK_S``."""
    with ThreadPoolExecutor(max(1, len(servers))) as pool:
        answers = pool.map(_server_model, servers.values())
    return [
        FoundModel(url, f"{name} at {url}: {', '.join(models[:3])}{', …' * (len(models) > 3)}")
        for (name, url), models in zip(servers.items(), answers, strict=True)
        if models
    ]


def _server_model(url: str) -> tuple[str, ...]:
    from toolsrv_runtime.models.openai import parse_endpoints
    from toolsrv_runtime.models.openai.server import OpenAIServer
    from toolsrv_runtime.stop import Stop

    server = OpenAIServer(parse_endpoints(url)[0], model="", key="", silence_s=ASK_S)
    try:
        return server.models(stop=Stop(), within_s=ASK_S)
    except ToolsrvError:
        return ()


def _files(home: Path, environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    pointer = home / ".lmstudio-home-pointer"
    studio = Path(_text(pointer).strip()) if pointer.is_file() else home / ".lmstudio"
    for folder in (studio / "models", home / ".cache" / "lm-studio" / "models"):
        yield from ((path, f"LM Studio's {path.stem}") for path in _gguf(folder))
    yield from _of_ollama(Path(environment.get("OLLAMA_MODELS") or home / ".ollama" / "models"))
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hub = environment.get("HF_HUB_CACHE") or Path(
        environment.get("HF_HOME") or cache / "huggingface", "hub"
    )
    yield from ((path, f"the hub cache's {path.stem}") for path in _gguf(Path(hub)))
    yield from ((path, f"llama.cpp's {path.stem}") for path in _gguf(cache / "llama.cpp"))


def _gguf(folder: Path) -> Iterator[Path]:
    """Yield the models in a folder: of one in parts the first, no projector of images."""
    try:
        for path in sorted(folder.rglob("*.gguf")):
            name = path.name.lower()
            if "mmproj" not in name and ("-of-" not in name or "-00001-of-" in name):
                yield path
    except OSError:
        return


def _of_ollama(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield Ollama's models: a manifest for each name, which says which blob the model is."""
    try:
        manifests = sorted(one for one in (folder / "manifests").rglob("*") if one.is_file())
    except OSError:
        return
    for manifest in manifests:
        for layer in _layers(manifest):
            digest = str(layer.get("digest", ""))
            if layer.get("mediaType") != _MODEL_LAYER or not digest.startswith("sha256:"):
                continue
            blob = folder / "blobs" / digest.replace(":", "-")
            if "/" not in digest and "\\" not in digest and blob.is_file():
                yield blob, f"Ollama's {manifest.parent.name}:{manifest.name}"


def _layers(manifest: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(_text(manifest))
    except (ValueError, RecursionError):
        return []
    layers = found.get("layers") if isinstance(found, dict) else None
    return [one for one in layers if isinstance(one, dict)] if isinstance(layers, list) else []


def _inspect_file(path: Path, title: str, room: int, cores: int) -> FoundModel | None:
    """Return a file with what speaks against it; None for one that is no chat model."""
    from toolsrv_runtime.gguf_header import read_header
    from toolsrv_runtime.requirements import check_model_header, split_parts

    try:
        header = read_header(path)
        check_model_header(header)
        size = sum(one.stat().st_size for one in split_parts(path))
    except (ToolsrvError, OSError):
        return None
    if not header.metadata.get("tokenizer.chat_template"):
        return None
    vocabulary = header.own("vocab_size")
    words = vocabulary if isinstance(vocabulary, int) and vocabulary > 0 else VOCABULARY
    needs = estimate_footprint(header, weights=size, vocabulary=words).total(CELLS)
    why = ""
    if needs > room:
        why = f"needs {format_bytes(needs)}, and {format_bytes(room)} are free"
    elif cores and size > cores * BYTES_PER_CORE:
        why = f"{format_bytes(size)} are slow on {cores} cores without a GPU"
    return FoundModel(str(path), title, size, why)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MANIFEST_LIMIT)
    except OSError:
        return ""


def environment() -> Mapping[str, str]:
    """Return the variables that move those folders."""
    return os.environ
