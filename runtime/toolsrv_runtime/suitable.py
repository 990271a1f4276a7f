"""Whether a GGUF file holds a model that can be run here, and the reason where it does not.

What can be run continues a text token by token: LLaMA and its kin, and recurrent and hybrid models,
whose paths share no beginnings. What the header tells is checked before llama.cpp loads anything.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from toolsrv_registry.errors import MemoryShortError
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.footprint import Footprint, told
from toolsrv_runtime.gguf_header import AGAIN, Header

INSTEAD = "choose a GGUF of an instruct model: LLaMA, Qwen, Mistral, Gemma …"

_EMBEDDERS = re.compile(r"bert|gemma-embedding|t5encoder|wavtokenizer")
_POOLS_NOTHING = (None, 0)
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


def parts(path: Path) -> list[Path]:
    """Return the files that a model lies in: the file itself, or all parts of a split one."""
    found = _PART.search(path.name)
    if found is None:
        return [path]
    stem = path.name[: found.start()]
    count = int(found[2])
    return [path.with_name(f"{stem}-{at:05}-of-{count:05}.gguf") for at in range(1, count + 1)]


def check_header(header: Header) -> None:
    """Refuse what is no generating model at all, and a model whose parts are missing.

    Raises:
        ModelError: says what the file is instead.
    """
    name, kind, own = repr(str(header.path)), header.architecture, header.metadata
    if own.get("general.type") == "adapter":
        raise ModelError(
            f"{name} is a LoRA adapter, not a model",
            hint="name its base model, with --adapter; or: toolsrv model merge",
        )
    if kind == "clip" or own.get("general.type") == "mmproj":
        raise ModelError(f"{name} is the image part of a model, not the model", hint=INSTEAD)
    if _EMBEDDERS.search(kind) or header.own("attention.causal") is False:
        raise ModelError(
            f"{name} is an embedding model ({kind}): it cannot write text", hint=INSTEAD
        )
    if header.own("pooling_type") not in _POOLS_NOTHING:
        raise ModelError(
            f"{name} is a model for embeddings or ranking (it pools its output): it cannot write "
            "text",
            hint=INSTEAD,
        )
    missing = [one.name for one in parts(header.path) if not one.is_file()]
    if missing:
        raise ModelError(
            f"{name} is one of {len(parts(header.path))} parts, and missing are: "
            f"{', '.join(missing)}",
            hint="download all parts into one folder, and name the first",
        )
    if header.tensors == 0:
        raise ModelError(f"{name} holds a vocabulary and no weights", hint=INSTEAD)


def refused(header: Header, error: ModelError) -> ModelError:
    """Return why llama.cpp could not load a file, better than it says itself."""
    import gguf  # noqa: PLC0415 - only when a file is refused

    name = repr(str(header.path))
    if header.architecture not in gguf.MODEL_ARCH_NAMES.values():
        return ModelError(
            f"{name} is a model of the architecture {header.architecture!r}, which "
            f"llama-cpp-python {version('llama-cpp-python')} does not know",
            hint=f"update llama-cpp-python, or {INSTEAD}",
        )
    if header.size < (needed := header.needed()):
        return ModelError(
            f"{name} is incomplete: it has {header.size:,} of {needed:,} bytes", hint=AGAIN
        )
    return error


def check_room(header: Header, available: int | None) -> None:
    """Tell a model that could not be loaded because its weights alone do not fit.

    Raises:
        MemoryShortError: with the numbers.
    """
    size = sum(one.stat().st_size for one in parts(header.path))
    if available is not None and available < size:
        raise MemoryShortError(
            f"{header.path.name} needs {told(size)} of memory for its weights and "
            f"{told(available)} are available",
            hint="close other programs, raise the limit (ulimit -v), or choose a smaller model",
        )


def whole_sequences(llama_cpp: Any, model: Any) -> bool:
    """Whether a model keeps a state of all it has read, which cannot be cut back to a beginning.

    So do recurrent models and hybrid ones: their paths share no beginnings.
    """
    return bool(llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model))


def check_loaded(llama_cpp: Any, model: Any, path: Path) -> None:
    """Refuse models that do not continue a text token by token.

    Raises:
        ModelError: says what kind of model it is.
    """
    kinds = {
        "an encoder-decoder model": llama_cpp.llama_model_has_encoder(model),
        "a diffusion model": llama_cpp.llama_model_is_diffusion(model),
    }
    kind = next((name for name, so in kinds.items() if so), None)
    if kind is not None:
        raise ModelError(
            f"{str(path)!r} is {kind}: it does not continue a text token by token",
            hint=INSTEAD,
        )


def fitting_cells(
    path: Path, needs: Footprint, *, context: int, wanted: int, available: int | None
) -> int:
    """Return for how many tokens to make room: ``wanted``, less where memory is short.

    Raises:
        MemoryShortError: not even one path of ``context`` tokens fits.
    """
    if available is None or needs.total(wanted) <= available:
        return wanted
    cells = needs.cells_within(available)
    if cells >= context:
        return cells
    raise MemoryShortError(
        f"{path.name} needs {told(needs.total(context))} of memory (weights "
        f"{told(needs.weights)}, {told(needs.per_token * context)} for a context of "
        f"{context:,} tokens) and {told(available)} are available",
        hint=_smaller(needs, cells),
    )


def _smaller(needs: Footprint, cells: int) -> str:
    """Say what would fit."""
    least = 512
    if cells >= least:
        return (
            f"in a profile set context = {cells // 256 * 256}, or close other programs, or raise "
            "the limit (ulimit -v), or quantise the model smaller: toolsrv model quantize"
        )
    return (
        "close other programs, raise the limit (ulimit -v), quantise the model smaller (toolsrv "
        f"model quantize), or choose a smaller one; weights alone take {told(needs.weights)}"
    )
