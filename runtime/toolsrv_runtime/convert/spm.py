"""SentencePiece tokenizers: ``tokenizer.model``, or the same as a ``tokenizer.json``.

llama.cpp joins the pair of pieces whose union scores highest. That is what SentencePiece's BPE
does, and what a ``tokenizer.json`` made from one does; other kinds are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolsrv_runtime.convert.errors import TokenizerError
from toolsrv_runtime.convert.vocabulary import (
    BYTE,
    HINT,
    NORMAL,
    Vocabulary,
    empty,
    put,
    put_added,
)

_BPE = 2
_BLANK = "\u2581"
_OTHER_HINT = "llama.cpp cannot reproduce it; take a checkpoint with LLaMA's own kind of tokenizer"


def read_tokenizer_model(folder: Path, size: int) -> Vocabulary:
    """Return the vocabulary in ``tokenizer.model``, for a model of ``size`` embeddings.

    Raises:
        TokenizerError: The file is damaged, or llama.cpp would cut texts in another way.
    """
    proto = _parse(folder / "tokenizer.model")
    _check(proto)
    vocabulary = empty(size, model="llama", pre="default")
    scores = [-10_000.0] * size
    for at, piece in enumerate(proto.pieces):
        put(vocabulary, at, piece.piece, piece.type)
        scores[at] = piece.score
    put_added(vocabulary, folder)
    vocabulary.scores = scores
    vocabulary.add_space_prefix = bool(proto.normalizer_spec.add_dummy_prefix)
    vocabulary.adds_bos = True
    for role in ("bos", "eos", "unk"):
        at = getattr(proto.trainer_spec, f"{role}_id")
        if at >= 0:
            vocabulary.specials[role] = at
    return vocabulary


def _parse(path: Path) -> Any:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - only when converting
    from sentencepiece import sentencepiece_model_pb2  # noqa: PLC0415 - only when converting

    module: Any = sentencepiece_model_pb2  # its classes are made when it is imported
    proto = module.ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
    except OSError as error:
        raise TokenizerError(f"cannot read {str(path)!r}: {error.strerror}", hint=HINT) from None
    except DecodeError:
        raise TokenizerError(f"{str(path)!r} is no SentencePiece model", hint=HINT) from None
    if not proto.pieces:
        raise TokenizerError(f"{str(path)!r} holds no tokens", hint=HINT)
    return proto


def _check(proto: Any) -> None:
    if proto.trainer_spec.model_type != _BPE:
        raise TokenizerError("tokenizer.model is no BPE but another kind", hint=_OTHER_HINT)
    rule = proto.normalizer_spec
    if rule.precompiled_charsmap or rule.remove_extra_whitespaces or not rule.escape_whitespaces:
        raise TokenizerError(
            f"tokenizer.model changes texts before it cuts them (rule {rule.name or 'unnamed'!r})",
            hint=_OTHER_HINT,
        )


def read_byte_fallback(folder: Path, said: Mapping[str, Any], size: int) -> Vocabulary:
    """Return the vocabulary of a ``tokenizer.json`` that was made from a SentencePiece model.

    A piece's score is the rank of the first merge that makes it. llama.cpp joins two pieces
    however they came about, so every way to make a piece must be a merge; SentencePiece's are.

    Raises:
        TokenizerError: See ``read_tokenizer_model``.
    """
    model = said["model"]
    vocab: Mapping[str, int] = model["vocab"]
    ranks = _ranks(model["merges"], vocab)
    vocabulary = empty(size, model="llama", pre="default")
    scores = [-1_000_000.0] * size
    for text, at in vocab.items():
        byte = len(text) == 6 and text.startswith("<0x") and text.endswith(">")
        put(vocabulary, at, text, BYTE if byte else NORMAL)
        scores[at] = float(-ranks[text]) if text in ranks else scores[at]
    put_added(vocabulary, folder)
    vocabulary.scores = scores
    vocabulary.add_space_prefix = _prefix(said)
    return vocabulary


def _ranks(merges: Sequence[Any], vocab: Mapping[str, int]) -> dict[str, int]:
    pairs = [one.split(" ", 1) if isinstance(one, str) else one for one in merges]
    ranks: dict[str, int] = {}
    for rank, (left, right) in enumerate(pairs):
        ranks.setdefault(left + right, rank)
    known = {(left, right) for left, right in pairs}
    for piece in ranks:
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocab and right in vocab and (left, right) not in known:
                raise TokenizerError(
                    f"tokenizer.json never joins {left!r} and {right!r}, llama.cpp would",
                    hint="put the SentencePiece file tokenizer.model into the folder",
                )
    return ranks


def _prefix(said: Mapping[str, Any]) -> bool:
    """Whether a blank is put before a text; older files say it in the normalizer."""
    parts = _parts(said.get("normalizer"), "normalizers")
    cut = _parts(said.get("pre_tokenizer"), "pretokenizers")
    blanks = any(
        one.get("type") == "Replace" and one.get("content") == _BLANK for one in parts
    ) or any(one.get("type") == "Metaspace" and not one.get("split", True) for one in cut)
    if (
        not blanks
        or {one.get("type") for one in parts} - {"Replace", "Prepend"}
        or {one.get("type") for one in cut} - {"Metaspace"}
    ):
        raise TokenizerError("tokenizer.json is of an unknown kind", hint=_OTHER_HINT)
    return any(one.get("type") == "Prepend" for one in parts) or any(
        one.get("prepend_scheme", "always") != "never" for one in cut
    )


def _parts(said: Any, key: str) -> list[Mapping[str, Any]]:
    if said is None:
        return []
    parts = said.get(key, [said]) if isinstance(said, Mapping) else []
    return [one for one in parts if isinstance(one, Mapping)]
