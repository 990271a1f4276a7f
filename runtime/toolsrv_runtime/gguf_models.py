"""GGUF files: inspect a file, choose its profile, and load its engine.

The only module that turns a path into an engine. ``requirements`` says what is refused, and why.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.convert.adapter import AdapterInfo, inspect_adapter, open_base, read_adapter
from toolsrv_runtime.engine.hardware import (
    Placement,
    backends,
    devices,
    gpu_hardware,
    place_layers,
    shared_memory,
)
from toolsrv_runtime.engine.prefix_cache import StateStore
from toolsrv_runtime.errors import ModelError, ProfileError
from toolsrv_runtime.gguf_header import GgufHeader, read_header
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.profiles.builtin import ModelFacts, check_profile
from toolsrv_runtime.profiles.choose import choose_profile
from toolsrv_runtime.requirements import (
    NO_MEMORY,
    Footprint,
    ProcessMemory,
    available_memory,
    batch_for,
    check_decoder,
    check_model_header,
    check_weights_fit,
    estimate_footprint,
    explain_load_error,
    fit_cells,
    further_cells,
    is_recurrent,
    physical_cores,
    resident_cells,
    split_parts,
)

_MODELS = Path(__file__).parent / "models"

SHIPPED_MODELS = {"nano": _MODELS / "nano.q8_0.gguf", "small": _MODELS / "small.q4_0.gguf"}
"""Name -> file of the models that ship."""

SHIPPED_MODEL = SHIPPED_MODELS["nano"]
"""The one that is used where none is named."""

SMALL_MODEL_BYTES = 64_000_000
"""Up to this size few threads evaluate a model."""

_VALUE_BYTES = 1 << 16


class ModelInfo(BaseModel):
    """What a GGUF file holds, the profile chosen for it and why.

    ``size_bytes`` is that of all its files, ``parameters`` a count; ``context_train`` is in
    tokens. ``device`` is where it is computed, ``gpu_layers`` of ``layers`` on a GPU, ``gpu_note``
    why no GPU or not the whole model is, and ``gpu_remedy`` the command that changes that.
    ``tool_calls``: how a chat model writes calls, as learnt from its template.
    ``shares_branches``: paths of a search share what they begin with; a recurrent model evaluates
    each again. ``problem`` says why the profile cannot be used with the model, ``remedy`` what to
    change; both are empty where it can. ``adapter`` is the LoRA adapter that is applied to it.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    name: str
    architecture: str
    description: str
    parameters: int
    size_bytes: int
    context_train: int
    vocabulary: int
    chat_template: bool
    tool_calls: str
    layers: int
    gpu_layers: int
    device: str
    gpu_note: str
    gpu_remedy: str
    shares_branches: bool
    memory: Footprint
    problem: str
    remedy: str
    profile: Profile
    reasons: dict[str, str]
    adapter: AdapterInfo | None = None


def inspect_model(
    path: Path | None = None,
    *,
    profile: str = "",
    profiles: Path | None = None,
    gpu_layers: int | None = None,
    adapter: Path | None = None,
) -> ModelInfo:
    """Return what the file (default: the model that ships) is, without evaluating anything.

    ``profile`` and ``profiles`` are ``asked`` and ``folder`` of ``profiles.choose``;
    ``gpu_layers`` overrides what the profile says of it. ``adapter`` is a GGUF LoRA adapter.

    Raises:
        AdapterError: the adapter is none, or not of this model.
        ModelError: no such file, not a GGUF, one that llama.cpp refuses or that cannot write.
        ProfileError: the profile is unknown or not acceptable.
    """
    path = path or SHIPPED_MODEL
    header = read_header(path)
    check_model_header(header)
    applied = inspect_adapter(adapter) if adapter is not None else None
    import llama_cpp  # noqa: PLC0415 - heavy

    model = _open(header)
    try:
        check_decoder(llama_cpp, model, path)
        if adapter is not None:
            _try_adapter(model, path, adapter)
        facts = _facts(llama_cpp, model, path)
        chosen, reasons = choose_profile(facts, asked=profile, folder=profiles)
        problem, remedy = _problem(chosen, facts)
        calls = ""
        if chosen.format == "chat" and not problem:
            try:
                calls = _call_syntax(model, chosen)
            except ModelError as error:
                problem, remedy = error.message, error.hint
        vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        size = sum(one.stat().st_size for one in split_parts(path))
        if applied is not None:
            size += applied.size_bytes
        layers = llama_cpp.llama_model_n_layer(model)
        if gpu_layers is not None:
            chosen = chosen.model_copy(update={"gpu_layers": gpu_layers})
            reasons["gpu_layers"] = "asked for"
        memory, placement = _placed(header, chosen, size, vocabulary, layers)
        return ModelInfo(
            path=str(path),
            name=facts.name or path.stem,
            architecture=facts.architecture or "unknown",
            description=_description(llama_cpp, model),
            parameters=llama_cpp.llama_model_n_params(model),
            size_bytes=size,
            context_train=facts.trained_context,
            vocabulary=vocabulary,
            chat_template=facts.chat_template is not None,
            tool_calls=calls,
            layers=placement.layers,
            gpu_layers=placement.gpu_layers,
            device=placement.device,
            gpu_note=placement.why,
            gpu_remedy=placement.remedy,
            shares_branches=not is_recurrent(llama_cpp, model),
            memory=memory,
            problem=problem,
            remedy=remedy,
            profile=chosen,
            reasons=reasons,
            adapter=applied,
        )
    finally:
        llama_cpp.llama_model_free(model)


def _try_adapter(model: Any, path: Path, adapter: Path) -> None:
    """Let llama.cpp load an adapter. Raises AdapterError or ModelError: says why it does not."""
    from toolsrv_runtime.engine.context import open_adapter  # noqa: PLC0415 - heavy

    try:
        open_adapter(model, adapter)
    except ModelError:
        read_adapter(adapter, open_base(path))  # knows the tensor that does not fit
        raise


def _call_syntax(model: Any, profile: Profile) -> str:
    """Return how a chat model writes calls. Raises ModelError: its template does not work."""
    from toolsrv_runtime.engine.vocabulary import Vocabulary  # noqa: PLC0415 - heavy
    from toolsrv_runtime.templates.rendering import check_template  # noqa: PLC0415 - heavy
    from toolsrv_runtime.templates.tool_template import ToolTemplate  # noqa: PLC0415 - heavy

    source, place = profile.chat_template, profile.chat_template_from
    tokens = Vocabulary(model).special
    if source:
        check_template(source, place, tokens)
    return ToolTemplate(source, place=place, tokens=tokens).syntax


STATES_BYTES = 1 << 30
"""Of evaluated prefixes kept on disk."""


def load_engine(
    path: Path | None = None,
    *,
    threads: int | None = None,
    gpu_layers: int | None = None,
    profile: str = "",
    profiles: Path | None = None,
    states: Path | None = None,
    program: ProcessMemory = NO_MEMORY,
    adapter: Path | None = None,
) -> tuple[Engine, Profile]:
    """Load a GGUF (default: the one that ships) under the profile that fits it. Blocks.

    ``threads`` and ``gpu_layers`` override what the profile says of them; the rest as for
    ``inspect_model``. Where a GPU has no room after all, the processor computes; where memory
    is short, less of a tree is kept resident. ``states`` is a folder for the evaluated prefixes of
    prompts, at most ``STATES_BYTES``; None keeps none. ``program`` is what the process comes to
    without the model: room for the rest of it is left. ``adapter`` as for ``inspect_model``.

    Raises:
        ModelError: see ``inspect_model``; MemoryShortError where one path does not fit.
        ProfileError: also where the profile's context is longer than the model carries.
    """
    from toolsrv_runtime.engine.llama import LlamaEngine  # noqa: PLC0415 - heavy

    path = path or SHIPPED_MODEL
    info = inspect_model(
        path, profile=profile, profiles=profiles, gpu_layers=gpu_layers, adapter=adapter
    )
    chosen = info.profile
    if info.problem:
        raise ProfileError(info.problem, hint=info.remedy)
    memory = info.memory
    if info.gpu_layers and not shared_memory():
        memory = memory.on_host(info.gpu_layers, info.layers)
    available = available_memory(program)
    cells = fit_cells(
        path,
        memory,
        context=chosen.context,
        wanted=resident_cells(chosen.context),
        available=available,
    )
    caches = None
    if available is not None:
        further = further_cells(chosen.context)
        caches = memory.caches_within(available, cells=cells, further=further)
    asked = threads or chosen.threads
    try:
        engine = LlamaEngine(
            path,
            context=chosen.context,
            threads=asked or _threads(path),
            # Asked for by number, so many and no more; else calls at once get a core each.
            cores=None if asked else physical_cores(),
            most_lanes=caches,
            rope_freq_scale=chosen.rope_freq_scale,
            cells=cells,
            stop_texts=chosen.stop,
            bos=chosen.bos,
            kv_type=chosen.kv_type,
            flash_attention=chosen.flash_attention,
            states=StateStore(states, limit=STATES_BYTES) if states is not None else None,
            batch=batch_for(gpu=info.gpu_layers > 0),
            gpu_layers=info.gpu_layers,
            adapter=adapter,
        )
    except ModelError:
        if not info.gpu_layers:
            raise
        # What a driver takes for itself, and other programs meanwhile, no estimate knows.
        return load_engine(
            path,
            threads=threads,
            gpu_layers=0,
            profile=profile,
            profiles=profiles,
            states=states,
            program=program,
            adapter=adapter,
        )
    return engine, chosen


def _placed(
    header: GgufHeader, profile: Profile, size: int, vocabulary: int, layers: int
) -> tuple[Footprint, Placement]:
    """Return what a model takes, and where it is computed."""
    from toolsrv_runtime.engine.context import uses_flash_attention  # noqa: PLC0415 - heavy

    def needs(*, gpu: bool) -> Footprint:
        flash = uses_flash_attention(profile.flash_attention, profile.kv_type, gpu=gpu) is not False
        return estimate_footprint(
            header,
            weights=size,
            vocabulary=vocabulary,
            kv_type=profile.kv_type,
            flash_attention=flash,
            batch=batch_for(gpu=gpu),
        )

    on_gpu = needs(gpu=True)
    placement = place_layers(
        asked=profile.gpu_layers,
        layers=layers,
        needs=on_gpu,
        cells=resident_cells(profile.context),
        built=backends(),
        found=devices(),
        hardware=gpu_hardware(),
    )
    return (on_gpu if placement.gpu_layers else needs(gpu=False)), placement


def _open(header: GgufHeader) -> Any:
    """Open a file with its tensors, so that a damaged one is found now."""
    from toolsrv_runtime.engine.context import open_model  # noqa: PLC0415 - heavy

    try:
        return open_model(header.path, repack=False)
    except ModelError as error:
        check_weights_fit(header, available_memory())
        raise explain_load_error(header, error) from None


def _problem(profile: Profile, facts: ModelFacts) -> tuple[str, str]:
    try:
        check_profile(profile, facts)
    except ProfileError as error:
        return error.message, error.hint
    return "", ""


def _threads(path: Path) -> int:
    """Return how many threads to evaluate with: the physical cores.

    Two at most for a small model, and only where as many cores stay free: on two cores they solved
    tasks in 0.9 of the time of one thread, but in 1.2 of it beside another process.
    """
    cores = physical_cores()
    return max(1, min(2, cores // 2)) if path.stat().st_size < SMALL_MODEL_BYTES else cores


def _facts(llama_cpp: Any, model: Any, path: Path) -> ModelFacts:
    vocab = llama_cpp.llama_model_get_vocab(model)
    return ModelFacts(
        metadata=_metadata(llama_cpp, model),
        filename=path.name,
        trained_context=llama_cpp.llama_model_n_ctx_train(model),
        compact_tokens=_has_token(llama_cpp, vocab, " use #1"),
        parameters=int(llama_cpp.llama_model_n_params(model)),
    )


def _description(llama_cpp: Any, model: Any) -> str:
    buffer = ctypes.create_string_buffer(256)
    llama_cpp.llama_model_desc(model, buffer, 256)
    return buffer.value.decode(errors="replace")


def _metadata(llama_cpp: Any, model: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    buffer = ctypes.create_string_buffer(_VALUE_BYTES)
    for index in range(llama_cpp.llama_model_meta_count(model)):
        llama_cpp.llama_model_meta_key_by_index(model, index, buffer, _VALUE_BYTES)
        key = buffer.value.decode(errors="replace")
        llama_cpp.llama_model_meta_val_str_by_index(model, index, buffer, _VALUE_BYTES)
        found[key] = buffer.value.decode(errors="replace")
    return found


def _has_token(llama_cpp: Any, vocab: Any, text: str) -> bool:
    """Whether ``text`` is one token of its own."""
    data = text.encode()
    buffer = (llama_cpp.llama_token * (len(data) + 2))()
    count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, True)
    return bool(count == 1)
