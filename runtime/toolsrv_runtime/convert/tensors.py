"""Which tensors a LLaMA has, and how each is written into a GGUF file.

Hugging Face keeps the two halves of a rotated head one after the other, llama.cpp keeps them
interleaved: the rows of queries and keys change their order, nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from toolsrv_runtime.convert.architecture import Architecture
from toolsrv_runtime.convert.errors import TensorError
from toolsrv_runtime.convert.shards import Floats, Stored

OutputType = Literal["f32", "f16", "bf16"]

_HINT = "the folder is not one whole checkpoint; merge adapters or download it again"


@dataclass(frozen=True)
class Wanted:
    """A tensor by its Hugging Face name. ``heads``: queries' or keys' rows, to be reordered."""

    name: str
    shape: tuple[int, ...]
    heads: int | None = None


def wanted(model: Architecture) -> Iterator[Wanted]:
    """Yield every tensor that a checkpoint of this architecture has, in layer order."""
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    yield Wanted("model.embed_tokens.weight", (model.vocabulary, model.width))
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        yield Wanted(f"{at}.input_layernorm.weight", (model.width,))
        for name, rows, heads in (
            ("q", queries, model.heads), ("k", keys, model.kv_heads), ("v", keys, None),
        ):  # fmt: skip
            yield Wanted(f"{at}.self_attn.{name}_proj.weight", (rows, model.width), heads)
            if model.attention_bias:
                yield Wanted(f"{at}.self_attn.{name}_proj.bias", (rows,), heads)
        yield from _linear(f"{at}.self_attn.o_proj", model.width, queries, model.attention_bias)
        yield Wanted(f"{at}.post_attention_layernorm.weight", (model.width,))
        for name, rows, columns in (
            ("gate_proj", model.inner, model.width),
            ("up_proj", model.inner, model.width),
            ("down_proj", model.width, model.inner),
        ):
            yield from _linear(f"{at}.mlp.{name}", rows, columns, model.mlp_bias)
    yield Wanted("model.norm.weight", (model.width,))
    if not model.tied:
        yield Wanted("lm_head.weight", (model.vocabulary, model.width))


def _linear(name: str, rows: int, columns: int, bias: bool) -> Iterator[Wanted]:
    yield Wanted(f"{name}.weight", (rows, columns))
    if bias:
        yield Wanted(f"{name}.bias", (rows,))


def check(plan: list[Wanted], found: dict[str, Stored], *, tied: bool) -> None:
    """Raise TensorError unless exactly the planned tensors are there, in their shapes."""
    for one in plan:
        stored = found.get(one.name)
        if stored is None:
            raise TensorError(f"the tensor {one.name!r} is missing", hint=_HINT)
        if stored.shape != one.shape:
            raise TensorError(
                f"the tensor {one.name!r} has the shape {list(stored.shape)}, and {list(one.shape)}"
                " follows from config.json",
                hint=_HINT,
            )
    known = {one.name for one in plan}
    more = [name for name in found if name not in known and not _computed(name, tied=tied)]
    if more:
        raise TensorError(f"a LLaMA has no tensor {more[0]!r}", hint=_HINT)


def _computed(name: str, *, tied: bool) -> bool:
    """Whether a tensor repeats what is known anyway: rotary frequencies, a tied output."""
    return name.endswith(".rotary_emb.inv_freq") or (tied and name == "lm_head.weight")


def gguf_names(layers: int) -> dict[str, str]:
    """Return every Hugging Face name of a LLaMA's tensors with its name in a GGUF file."""
    import gguf  # noqa: PLC0415 - only when something is converted

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)
    stems = (
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
        "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
        "input_layernorm", "post_attention_layernorm",
    )  # fmt: skip
    every = [f"model.layers.{layer}.{stem}" for layer in range(layers) for stem in stems]
    every += ["model.embed_tokens", "model.norm", "lm_head"]
    return {
        f"{stem}.{kind}": str(names.get_name(f"{stem}.{kind}", (".weight", ".bias")))
        for stem in every
        for kind in ("weight", "bias")
    }


def stored_type(one: Wanted, kind: OutputType) -> tuple[Any, int]:
    """Return GGUF's type of a tensor and its bytes; vectors (norms, biases) stay float32."""
    from gguf.constants import GGMLQuantizationType as Types  # noqa: PLC0415 - as above

    count = int(np.prod(one.shape))
    if len(one.shape) == 1 or kind == "f32":
        return Types.F32, 4 * count
    return (Types.F16 if kind == "f16" else Types.BF16), 2 * count


def converted(one: Wanted, values: Floats, raw_type: Any) -> NDArray[Any]:
    """Return a tensor's values as they are written.

    Raises:
        TensorError: Values that are no numbers, or too large for float16.
    """
    from gguf.quants import quantize  # noqa: PLC0415 - as above

    if not np.isfinite(values).all():
        raise TensorError(
            f"the tensor {one.name!r} holds values that are no numbers",
            hint="the training went wrong or the file is damaged; take another checkpoint",
        )
    if one.heads is not None:
        values = interleaved(values, one.heads)
    with np.errstate(over="ignore"):
        data = np.ascontiguousarray(quantize(values, raw_type))
    if data.dtype == np.float16 and not np.isfinite(data).all():
        raise TensorError(
            f"the tensor {one.name!r} holds values that float16 cannot", hint="give --type bf16"
        )
    return data


def interleaved(values: Floats, heads: int) -> Floats:
    """Return the rows of queries or keys in llama.cpp's order (see the module's docstring)."""
    rows = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return rows.swapaxes(1, 2).reshape(values.shape)
