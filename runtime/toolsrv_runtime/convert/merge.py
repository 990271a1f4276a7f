"""Merge a LoRA adapter into its base model: one GGUF file, written atomically.

Changed tensors are dequantised, summed in float32 and quantised again by the gguf package; all
others are copied bit by bit. Memory holds one tensor.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert import AdapterError
from toolsrv_runtime.convert.adapter import (
    BaseFile,
    LoraAdapter,
    LoraPair,
    dequantized,
    open_base,
    read_adapter,
    sha256,
)
from toolsrv_runtime.convert.checkpoint import atomic_file, check_absent, check_disk_space

MergeType = Literal["auto", "base", "Q8_0", "F16", "F32"]
"""Type of the changed tensors. ``auto``: as in the base where those are floats, else Q8_0;
``base``: as in the base where gguf can quantise to that, else Q8_0."""

Progress = Callable[[int, int], None]
"""Called with (tensors done, tensors in all)."""

_FLOATS = ("F32", "F16", "BF16")
_QUANTISED = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
_PIECE = 1 << 24
"""Values that are summed at once: 64 MiB as float32."""
_ABOUT = "toolsrv.merge."


class Merged(BaseModel):
    """A merged file. ``types`` counts the changed tensors by the type they were written in."""

    model_config = ConfigDict(frozen=True)

    path: str
    size_bytes: int
    tensors: int
    changed: int
    types: dict[str, int]
    rank: int
    base: str
    base_sha256: str
    adapter: str
    adapter_sha256: str


def merge(
    base: Path,
    adapter: Path,
    target: Path | None = None,
    *,
    type: MergeType = "auto",  # noqa: A002 - what GGUF and llama.cpp call it
    expected_sha256: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Merged:
    """Write the GGUF file ``base`` with the LoRA ``adapter`` added (default: beside the base).

    ``expected_sha256``: what the base is known to be. ``force`` replaces a file that is there.

    Raises:
        ModelError: A file is missing, damaged or of the wrong kind.
        AdapterError: The adapter is not supported or of another base, or the base was altered.
        WriteError: The file cannot be written.
        BusyError: Another process writes the same file.
        UsageError: An unknown type, or the target is an input or is there already.
    """
    if type not in get_args(MergeType):
        raise UsageError(
            f"there is no type {type!r}", hint=f"choose one of: {', '.join(get_args(MergeType))}"
        )
    opened = open_base(base)
    found = read_adapter(adapter, opened)
    target = target or base.with_name(f"{base.stem}.{found.name}.gguf")
    if target.exists() and any(target.samefile(one) for one in (base, found.weights)):
        raise UsageError(
            "the result would replace a file that it is made from", hint="name another with --out"
        )
    if not force:
        check_absent(target)
    before = _stamp(base), _stamp(found.weights)
    digests = sha256(base), sha256(found.weights)
    if expected_sha256 is not None and digests[0] != expected_sha256:
        raise AdapterError(
            f"{base.name!r} was altered since it was put on the list: its SHA-256 is {digests[0]}",
            hint="pull the model again, or name the file by its path",
        )
    with atomic_file(target) as fresh:
        file = _MergedFile(fresh, opened, found, type)
        try:
            file.head(*digests)
            file.plan(target)
            for at, name in enumerate(opened.tensors):
                file.put(name)
                if progress is not None:
                    progress(at + 1, len(opened.tensors))
        finally:
            file.close()
        if (_stamp(base), _stamp(found.weights)) != before:
            raise AdapterError(
                "the base or the adapter was changed while it was read", hint="merge again"
            )
    return Merged(
        path=str(target),
        size_bytes=target.stat().st_size,
        tensors=len(opened.tensors),
        changed=len(found.pairs),
        types=dict(Counter(file.types[name].name for name in found.pairs)),
        rank=found.rank,
        base=base.name,
        base_sha256=digests[0],
        adapter=found.name,
        adapter_sha256=digests[1],
    )


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


class _MergedFile:
    """The merged file as it is written."""

    def __init__(self, path: Path, base: BaseFile, adapter: LoraAdapter, kind: MergeType) -> None:
        import gguf  # noqa: PLC0415 - only when something is merged

        logging.getLogger("gguf").setLevel(logging.CRITICAL)  # what matters raises
        self._writer: Any = gguf.GGUFWriter(path, base.header.architecture)
        self._path = path
        self._base = base
        self._adapter = adapter
        self.types = {
            name: _type(kind, one) if name in adapter.pairs else one.tensor_type
            for name, one in base.tensors.items()
        }

    def head(self, base_sha256: str, adapter_sha256: str) -> None:
        """Set the base's metadata, and where the file comes from."""
        import gguf  # noqa: PLC0415 - as above

        writer = self._writer
        own = self._base.header.metadata
        name = str(own.get("general.name") or self._base.path.stem)
        ours = {"general.architecture", "general.name", "general.alignment", "general.file_type"}
        if (alignment := own.get("general.alignment")) is not None:
            writer.add_custom_alignment(alignment)
        writer.add_string("general.name", f"{name} + {self._adapter.name}")
        writer.add_file_type(self._file_type())
        for key, field in self._base.reader.fields.items():
            if key.startswith(("GGUF.", _ABOUT)) or key in ours:
                continue
            kind = field.types[0]
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(key, field.contents(), kind, sub_type=sub)
        about = {
            "base": self._base.path.name, "base_sha256": base_sha256,
            "adapter": self._adapter.name, "adapter_sha256": adapter_sha256,
        }  # fmt: skip
        for key, value in about.items():
            writer.add_string(f"{_ABOUT}{key}", value)

    def _file_type(self) -> int:
        """Return GGUF's file type: that of the changed tensors where they are most of the file."""
        import gguf  # noqa: PLC0415 - as above

        was = self._base.header.metadata.get("general.file_type")
        changed = Counter[str]()
        for name in self._adapter.pairs:
            changed[self.types[name].name] += int(self._base.tensors[name].n_elements)
        kind, count = changed.most_common(1)[0]
        every = sum(int(one.n_elements) for one in self._base.tensors.values())
        if 2 * count < every and isinstance(was, int):
            return was
        prefix = "ALL" if kind == "F32" else "MOSTLY"
        return int(getattr(gguf.LlamaFileType, f"{prefix}_{kind}"))

    def plan(self, target: Path) -> None:
        """Write metadata and the list of tensors. Raises WriteError: there is no room."""
        size = 0
        for name in self._base.tensors:
            shape, kind = self._base.shape(name), self.types[name]
            count = _bytes(shape, kind)
            self._writer.add_tensor_info(name, shape, "float32", count, raw_dtype=kind)
            size += count
        check_disk_space(self._path, target, size)
        self._writer.write_header_to_file()
        self._writer.write_kv_data_to_file()
        self._writer.write_ti_data_to_file()

    def put(self, name: str) -> None:
        """Write the next tensor."""
        tensor = self._base.tensors[name]
        pair = self._adapter.pairs.get(name)
        data = tensor.data if pair is None else _summed(tensor, pair, self.types[name])
        self._writer.write_tensor_data(data)

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def _type(kind: MergeType, tensor: Any) -> Any:
    """Return the type that a changed tensor is written in; F16 where rows are no whole blocks."""
    from gguf.constants import GGML_QUANT_SIZES  # noqa: PLC0415 - as above
    from gguf.constants import GGMLQuantizationType as Types  # noqa: PLC0415 - as above

    was = tensor.tensor_type.name
    kept = was in _FLOATS if kind == "auto" else was in _FLOATS + _QUANTISED
    name = kind if kind not in ("auto", "base") else was if kept else "Q8_0"
    found = Types[name]
    return found if int(tensor.shape[0]) % GGML_QUANT_SIZES[found][0] == 0 else Types.F16


def _bytes(shape: tuple[int, ...], kind: Any) -> int:
    from gguf.constants import GGML_QUANT_SIZES  # noqa: PLC0415 - as above

    block, size = GGML_QUANT_SIZES[kind]
    return int(np.prod(shape, dtype=np.int64)) // block * size


def _summed(tensor: Any, pair: LoraPair, kind: Any) -> NDArray[Any]:
    """Return a changed matrix as it is written.

    Raises:
        AdapterError: Values that are no numbers, or too large for float16.
    """
    from gguf.quants import quantize  # noqa: PLC0415 - as above

    a, b = pair.factors()
    rows = b.shape[0]
    step = max(1, _PIECE // a.shape[1])
    pieces = []
    for start in range(0, rows, step):
        part = slice(start, start + step)
        values = dequantized(tensor.name, tensor.data[part], tensor.tensor_type) + b[part] @ a
        if not np.isfinite(values).all():
            raise AdapterError(
                f"the sum of {tensor.name!r} holds values that are no numbers",
                hint="the training went wrong or a file is damaged; take another adapter",
            )
        with np.errstate(over="ignore"):
            data = np.ascontiguousarray(quantize(values, kind))
        if data.dtype == np.float16 and not np.isfinite(data).all():
            raise AdapterError(
                f"the sum of {tensor.name!r} holds values that float16 cannot",
                hint="give --type F32",
            )
        pieces.append(data)
    return np.concatenate(pieces)
