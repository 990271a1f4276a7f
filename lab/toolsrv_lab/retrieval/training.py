"""Training of the sentence encoder: material, pairs as numbers, checkpoints, model folder."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.extras import load
from toolsrv_lab.instructions import requests as services
from toolsrv_lab.instructions import writer
from toolsrv_lab.instructions.errands import errands, spoken, written
from toolsrv_lab.instructions.requests import requests
from toolsrv_lab.retrieval.contrastive.options import Options
from toolsrv_lab.retrieval.contrastive.pairs import MOST_RELEVANT, Ids, Pairs, Texts
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_lab.training_runs import (
    SAVE_SECONDS,
    keep_freed_memory,
    read_checkpoint,
    write_checkpoint,
    write_whole,
)
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_text
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

if TYPE_CHECKING:
    from toolsrv_lab.retrieval.contrastive.files import Base
    from toolsrv_lab.retrieval.contrastive.mining import Counted
    from toolsrv_lab.retrieval.contrastive.training import Progress as StepProgress

Progress = Callable[[int, int], None]

HELD_OUT = 0.1
"""Share of the tools of imported catalogs whose documents no encoder learns from."""
MAX_TOKENS = 80
DOCUMENT_CHARACTERS = 360
_TOKENISER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Material:
    """Documents, and the queries that they serve."""

    apis: tuple[Api, ...]
    queries: tuple[Query, ...]


def material(
    apis: Iterable[Api],
    more: Iterable[Query] = (),
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Material:
    """Return all that the encoder learns from; nothing that is held out is in it.

    Documents are those of ``apis``, of the catalog that ships and, with ``folder`` (see
    ``read_services``), of services; queries the needs, requests and errands that come with the
    laboratory, the requests to services, and ``more`` (instructions). ``progress`` is told how many of the
    services' documents are read. Raises NotFoundError where ``folder`` has none of them.
    """
    ours = load_offline_catalog().apis
    own = {api.id for api in ours}
    found = [*ours]
    found += [one for one in apis if one.id not in own and not writer.is_held_out(one, HELD_OUT)]
    queries = [*_comes_with_the_laboratory(), *more]
    if folder is not None:
        operations, asked = services.read_services(folder, progress=progress)
        found += [
            one
            for one in operations
            if not services.is_held_out_document(services.document_of(one.id))
        ]
        queries += [one for one in asked if not services.is_held_out(one)]
    return Material(tuple({one.id: one for one in found}.values()), tuple(queries))


def make_pairs(learnt: Material, base: Path) -> Pairs:
    """Return the material as token ids of the tokeniser in ``base``.

    Raises DataError when no query names a document, NotFoundError where the tokeniser is missing.
    """
    documents = _documents(learnt.apis)
    texts = _Texts()
    for query in learnt.queries:
        _add(query, documents.places, texts)
    if not texts.needs:
        raise DataError(
            "no query of the training names an API of the catalogs",
            hint="import the catalog that they are about: toolsrv catalog pull toolbench",
        )
    return Pairs(
        documents=_tokens(documents.texts, base),
        texts=_tokens(list(texts.numbers), base),
        groups=np.asarray(documents.groups, np.int32),
        needs=_table(texts.needs),
        wholes=_table(texts.wholes),
        relevant=_relevant(texts),
    )


def _comes_with_the_laboratory() -> Iterator[Query]:
    for api_id, needs in written().items():
        for need in needs:
            yield _query(spoken(need), [(api_id, spoken(need))])
    for request in requests():
        yield _query(request.text, request.needs.items())
    for errand in errands():
        words: dict[str, str] = {}
        for step in errand.steps:
            if step.api:
                words.setdefault(step.api, step.words)
        yield _query(errand.task, words.items())


def _query(text: str, needs: Iterable[tuple[str, str]]) -> Query:
    pairs = tuple(needs)
    return Query(
        query_id="",
        query=text,
        relevant=tuple(Named(id=api_id) for api_id, _ in pairs),
        needs=tuple(words for _, words in pairs),
    )


@dataclass(frozen=True, slots=True)
class _Documents:
    """Distinct texts, the number of each one's service, and API id -> place."""

    texts: list[str]
    groups: list[int]
    places: dict[str, int]


def _documents(apis: Sequence[Api]) -> _Documents:
    numbers: dict[str, int] = {}
    groups: dict[str, int] = {}
    found = _Documents([], [], {})
    for api in apis:
        text = document_text(api)[:DOCUMENT_CHARACTERS]
        if text not in numbers:
            numbers[text] = len(found.texts)
            found.texts.append(text)
            # Titles of services' documents are not distinct.
            name = services.document_of(api.id) if api.id.startswith("service/") else ""
            name = name or f"{api.category}/{api.tool}"
            found.groups.append(groups.setdefault(name, len(groups)))
        found.places[api.id] = numbers[text]
    return found


@dataclass(slots=True)
class _Texts:
    """Text -> number, the pairs of numbers and documents, and all that each text needs."""

    numbers: dict[str, int] = field(default_factory=dict)
    needs: set[tuple[int, int]] = field(default_factory=set)
    wholes: set[tuple[int, int]] = field(default_factory=set)
    relevant: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def number(self, text: str, relevant: Iterable[int]) -> int:
        """Return the number of a text, whose documents include ``relevant``."""
        at = self.numbers.setdefault(" ".join(text.split()), len(self.numbers))
        self.relevant[at].update(relevant)
        return at


def _add(query: Query, places: dict[str, int], texts: _Texts) -> None:
    ids = query.relevant_ids
    known = {places[one] for one in ids if one in places}
    if not known:
        return
    told = [
        (texts.number(words, known), places[one.id])
        for one, words in zip(query.relevant, query.needs, strict=bool(query.needs))
        if one.id in places
    ]
    texts.needs.update(told)
    if not query.needs:
        texts.needs.update((texts.number(query.query, known), place) for place in known)
    elif all(one in places for one in ids):
        whole = texts.number(query.query, known)
        if all(whole != number for number, _ in told):
            texts.wholes.update((whole, place) for place in known)


def _relevant(texts: _Texts) -> Ids:
    """Return what each text needs, first what it is paired with."""
    own: dict[int, dict[int, None]] = defaultdict(dict)
    for number, place in sorted(texts.needs | texts.wholes):
        own[number][place] = None
    found = np.full((len(texts.numbers), MOST_RELEVANT), -1, np.int32)
    for number, places in texts.relevant.items():
        ordered = [*dict.fromkeys([*own[number], *sorted(places)])][:MOST_RELEVANT]
        found[number, : len(ordered)] = ordered
    return found


def _table(pairs: set[tuple[int, int]]) -> Ids:
    return np.asarray(sorted(pairs), np.int32).reshape(-1, 2)


def _tokens(texts: list[str], base: Path) -> Texts:
    path = base / _TOKENISER
    if not path.is_file():
        raise NotFoundError(
            f"{str(base)!r} has no {_TOKENISER}", hint="name a sentence-transformers folder"
        )
    tokeniser = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
    tokeniser.no_padding()
    tokeniser.enable_truncation(MAX_TOKENS)
    return Texts.of([one.ids for one in tokeniser.encode_batch(texts)])


MODEL = "model"


def has_gpu() -> bool:
    """Return whether a training would run on a GPU."""
    return bool(load("torch").cuda.is_available())


def train(
    base: Path,
    out: Path,
    pairs: Pairs,
    options: Options,
    *,
    progress: StepProgress | None = None,
    counted: Counted | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Path:
    """Train the encoder in ``base`` and return the folder of the trained one, ``out``/model.

    A checkpoint is written every ``save_seconds``: a kill loses no more than that, and the search for
    hard negatives that it interrupts.

    Raises:
        DataError: a checkpoint of other settings or data, or no room for one.
        UsageError: ``base`` is no BERT, or a batch is too large for the device.
    """
    device = "cuda" if has_gpu() else "cpu"
    if device == "cpu":
        keep_freed_memory()
    out.mkdir(parents=True, exist_ok=True)
    settings = json.dumps({"options": dataclasses.asdict(options), "data": pairs.digest()})
    training = _contrastive("training")
    try:
        trained = training.train(
            pairs,
            _read_base(base),
            options,
            device,
            progress=progress,
            counted=counted,
            state=read_checkpoint(out, settings, device),
            save=lambda state: write_checkpoint(out, settings, state),
            save_seconds=save_seconds,
        )
    except load("torch").OutOfMemoryError as error:
        raise UsageError(
            f"batches of {options.batch_size} are too large for this device's memory",
            hint="give a smaller --batch-size",
        ) from error
    with write_whole(out):
        (out / "training.json").write_text(json.dumps(trained.about, indent=2) + "\n", "utf-8")
        return _assemble(trained.tensors, base, out)


def export_pairs(folder: Path, base: Path, pairs: Pairs) -> None:
    """Write what ``python -m contrastive --data FOLDER`` reads: pairs and the base's weights.

    Raises DataError where there is no room, UsageError where ``base`` is no BERT.
    """
    files = _contrastive("files")
    with write_whole(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files.write_pairs(folder, pairs)
        files.write_weights(folder, _read_base(base))


def has_pieces(folder: Path) -> bool:
    """Return whether a folder is a run of ``python -m contrastive``."""
    return bool(_contrastive("files").has_pieces(folder))


def model_folder(folder: Path, base: Path) -> Path:
    """Make the model's folder of a run of ``python -m contrastive`` from its pieces; return it.

    Raises DataError for pieces that are not whole, or not of this base.
    """
    files = _contrastive("files")
    try:
        tensors = files.read_run(folder)
    except (load("safetensors").SafetensorError, OSError, ValueError) as error:
        raise DataError(
            f"the weights in {str(folder)!r} are not whole: {error}",
            hint="copy all of the run's files again",
        ) from error
    return _assemble(tensors, base, folder)


def _read_base(base: Path) -> Base:
    files = _contrastive("files")
    network = _contrastive("network")
    bert = _library(base)[0].auto_model
    if bert.config.model_type != "bert":
        raise UsageError(
            f"{str(base)!r} cannot be trained: it is {bert.config.model_type!r}",
            hint="take a sentence-transformers folder of a BERT, such as all-MiniLM-L6-v2",
        )
    tensors = {name: one.detach() for name, one in bert.state_dict().items()}
    shape = network.Shape.of(tensors, int(bert.config.num_attention_heads))
    made: Base = files.Base(tensors, shape)
    return made


def _assemble(tensors: dict[str, Any], base: Path, out: Path) -> Path:
    """Write the folder of a model with the base's tokeniser and these weights."""
    library = _library(base)
    library.max_seq_length = MAX_TOKENS
    weights = {name: one.detach().float().cpu() for name, one in tensors.items()}
    try:
        library[0].auto_model.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(
            f"the weights are not those of {str(base)!r}",
            hint="name the base that the run began with: --base DIR",
        ) from error
    library.save(str(out / MODEL))
    return out / MODEL


def _library(base: Path) -> Any:
    return load("sentence_transformers").SentenceTransformer(str(base), device="cpu")


def _contrastive(name: str) -> Any:
    """Return a module of ``contrastive``; raises UsageError where torch is not installed."""
    load("torch")
    return load(f"toolsrv_lab.retrieval.contrastive.{name}")
