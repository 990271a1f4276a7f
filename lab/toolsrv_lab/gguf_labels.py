"""A GGUF file copied with more texts in its metadata. Tensors are copied as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load


def label(source: Path, target: Path, texts: Mapping[str, str]) -> None:
    """Write ``source`` as ``target`` with ``texts`` by key; those keys' old values are gone."""
    gguf = load("gguf")
    reader = gguf.GGUFReader(str(source))
    name = gguf.Keys.General.ARCHITECTURE
    writer = gguf.GGUFWriter(str(target), reader.get_field(name).contents())
    writer.data_alignment = reader.alignment
    for field in reader.fields.values():
        if field.name != name and not field.name.startswith("GGUF.") and field.name not in texts:
            _copy(writer, field, gguf.GGUFValueType.ARRAY)
    for key, text in texts.items():
        writer.add_string(key, text)
    for one in reader.tensors:
        data = one.data
        writer.add_tensor_info(one.name, data.shape, data.dtype, data.nbytes, one.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for one in reader.tensors:
        writer.write_tensor_data(one.data)
    writer.close()


def count_parameters(path: Path) -> int:
    """Return the number of weights in a GGUF file."""
    return sum(int(one.n_elements) for one in load("gguf").GGUFReader(str(path)).tensors)


def _copy(writer: Any, field: Any, array: Any) -> None:
    kind = field.types[0]
    inner = field.types[-1] if kind == array else None
    writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
