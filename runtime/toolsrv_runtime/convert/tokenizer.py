"""Tokenizers of checkpoints as GGUF vocabularies: SentencePiece BPE and byte-level BPE.

Reads ``tokenizer.model`` or ``tokenizer.json``, and the added tokens of the other tokenizer files.
A tokenizer that llama.cpp would not reproduce raises TokenizerError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolsrv_runtime.convert import TokenizerError
from toolsrv_runtime.convert.architecture import read_json

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Kinds of tokens: SentencePiece's numbers, and GGUF's."""

DOWNLOAD_HINT = "download the tokenizer's files again, from where the weights come from"


@dataclass
class GgufVocabulary:
    """Tokens by id. ``model`` and ``pre`` are llama.cpp's names for how text is cut.

    ``specials`` are ids by role (bos, eos, unk) where the checkpoint's other files say nothing;
    ``adds_bos`` likewise.
    """

    model: Literal["llama", "gpt2"]
    pre: str
    tokens: list[str]
    kinds: list[int]
    scores: list[float] | None = None
    add_space_prefix: bool | None = None
    adds_bos: bool = False
    specials: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AddedToken:
    """A token that is cut out of a text before anything else."""

    text: str
    special: bool


def empty_vocabulary(size: int, *, model: Literal["llama", "gpt2"], pre: str) -> GgufVocabulary:
    """Return a vocabulary of ``size`` unused tokens, as padding of the embeddings has them."""
    return GgufVocabulary(
        model=model,
        pre=pre,
        tokens=[f"[PAD{at}]" for at in range(size)],
        kinds=[UNUSED] * size,
    )


def put_token(vocabulary: GgufVocabulary, at: object, text: object, kind: int) -> None:
    """Set one token.

    Raises:
        TokenizerError: An id outside the model's embeddings, or a text that is none.
    """
    if not isinstance(at, int) or not 0 <= at < len(vocabulary.tokens):
        raise TokenizerError(
            f"the token {text!r} has the id {at!r}, and the model has "
            f"{len(vocabulary.tokens)} embeddings",
            hint="the tokenizer belongs to another model; " + DOWNLOAD_HINT,
        )
    if not isinstance(text, str):
        raise TokenizerError(f"token {at} is no text", hint=DOWNLOAD_HINT)
    vocabulary.tokens[at] = text
    vocabulary.kinds[at] = kind


def put_added_tokens(vocabulary: GgufVocabulary, folder: Path) -> None:
    """Set the tokens that the folder's other files add or declare special."""
    for at, one in read_added_tokens(folder).items():
        known = 0 <= at < len(vocabulary.tokens) and vocabulary.tokens[at] == one.text
        if known and vocabulary.kinds[at] in {UNKNOWN, CONTROL, BYTE}:
            continue
        if one.special:
            put_token(vocabulary, at, one.text, CONTROL)
        else:
            put_token(vocabulary, at, one.text.replace("\u2581", " "), USER_DEFINED)


def read_added_tokens(folder: Path) -> dict[int, AddedToken]:
    """Return added tokens by id, from the three files that may name them; later ones win."""
    found: dict[int, AddedToken] = {}
    for text, at in _object(folder / "added_tokens.json").items():
        if isinstance(at, int):
            found[at] = AddedToken(text, special=False)
    entries = _object(folder / "tokenizer.json").get("added_tokens")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("id"), int):
            found[entry["id"]] = _added(entry)
    declared = _object(folder / "tokenizer_config.json").get("added_tokens_decoder")
    for key, entry in declared.items() if isinstance(declared, dict) else ():
        if str(key).isdecimal() and isinstance(entry, dict):
            found[int(key)] = _added(entry)
    return found


def _added(entry: Mapping[str, Any]) -> AddedToken:
    return AddedToken(str(entry.get("content", "")), special=bool(entry.get("special", False)))


def _object(path: Path) -> dict[str, Any]:
    return read_json(path, hint=DOWNLOAD_HINT) if path.is_file() else {}


_BPE = 2
_BLANK = "\u2581"
_SPM_HINT = "llama.cpp cannot reproduce it; take a checkpoint with LLaMA's own kind of tokenizer"


def read_tokenizer_model(folder: Path, size: int) -> GgufVocabulary:
    """Return the vocabulary in ``tokenizer.model``, for a model of ``size`` embeddings.

    Raises:
        TokenizerError: The file is damaged, or llama.cpp would cut texts in another way.
    """
    proto = _parse(folder / "tokenizer.model")
    _check_spm(proto)
    vocabulary = empty_vocabulary(size, model="llama", pre="default")
    scores = [-10_000.0] * size
    for at, piece in enumerate(proto.pieces):
        put_token(vocabulary, at, piece.piece, piece.type)
        scores[at] = piece.score
    put_added_tokens(vocabulary, folder)
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
        raise TokenizerError(
            f"cannot read {str(path)!r}: {error.strerror}", hint=DOWNLOAD_HINT
        ) from None
    except DecodeError:
        raise TokenizerError(
            f"{str(path)!r} is no SentencePiece model", hint=DOWNLOAD_HINT
        ) from None
    if not proto.pieces:
        raise TokenizerError(f"{str(path)!r} holds no tokens", hint=DOWNLOAD_HINT)
    return proto


def _check_spm(proto: Any) -> None:
    if proto.trainer_spec.model_type != _BPE:
        raise TokenizerError("tokenizer.model is no BPE but another kind", hint=_SPM_HINT)
    rule = proto.normalizer_spec
    if rule.precompiled_charsmap or rule.remove_extra_whitespaces or not rule.escape_whitespaces:
        raise TokenizerError(
            f"tokenizer.model changes texts before it cuts them (rule {rule.name or 'unnamed'!r})",
            hint=_SPM_HINT,
        )


def read_byte_fallback(folder: Path, said: Mapping[str, Any], size: int) -> GgufVocabulary:
    """Return the vocabulary of a ``tokenizer.json`` that was made from a SentencePiece model.

    A piece's score is the rank of the first merge that makes it. llama.cpp joins two pieces
    however they came about, so every way to make a piece must be a merge; SentencePiece's are.

    Raises:
        TokenizerError: See ``read_tokenizer_model``.
    """
    model = said["model"]
    vocab: Mapping[str, int] = model["vocab"]
    ranks = _ranks(model["merges"], vocab)
    vocabulary = empty_vocabulary(size, model="llama", pre="default")
    scores = [-1_000_000.0] * size
    for text, at in vocab.items():
        byte = len(text) == 6 and text.startswith("<0x") and text.endswith(">")
        put_token(vocabulary, at, text, BYTE if byte else NORMAL)
        scores[at] = float(-ranks[text]) if text in ranks else scores[at]
    put_added_tokens(vocabulary, folder)
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
        raise TokenizerError("tokenizer.json is of an unknown kind", hint=_SPM_HINT)
    return any(one.get("type") == "Prepend" for one in parts) or any(
        one.get("prepend_scheme", "always") != "never" for one in cut
    )


def _parts(said: Any, key: str) -> list[Mapping[str, Any]]:
    if said is None:
        return []
    parts = said.get(key, [said]) if isinstance(said, Mapping) else []
    return [one for one in parts if isinstance(one, Mapping)]


LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How LLaMA 3 cuts a text into words."""

_QWEN2 = LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
_BPE_HINT = "llama.cpp would cut texts in another way; only known rules are converted"


def read_tokenizer_json(folder: Path, size: int) -> GgufVocabulary:
    """Return the vocabulary in ``tokenizer.json``, for a model of ``size`` embeddings.

    Raises:
        TokenizerError: The file is damaged, or llama.cpp would cut texts in another way.
    """
    said = read_json(folder / "tokenizer.json", hint=DOWNLOAD_HINT)
    model = said.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        kind = model.get("type") if isinstance(model, dict) else None
        raise TokenizerError(f"tokenizer.json is no BPE but {kind!r}", hint=_BPE_HINT)
    _check_bpe(model)
    if model.get("byte_fallback"):
        return read_byte_fallback(folder, said, size)
    pre = pre_tokenizer(said.get("pre_tokenizer"), ignore_merges=bool(model.get("ignore_merges")))
    vocabulary = empty_vocabulary(size, model="gpt2", pre=pre)
    for text, at in model["vocab"].items():
        put_token(vocabulary, at, text, NORMAL)
    put_added_tokens(vocabulary, folder)
    match said.get("normalizer"):
        case None:
            pass
        case {"type": "NFC"}:
            vocabulary.notes.append(
                "the tokenizer composes characters (NFC), llama.cpp does not: ids differ for "
                "texts with decomposed accents"
            )
        case other:
            raise TokenizerError(f"tokenizer.json normalises texts: {other!r}", hint=_BPE_HINT)
    return vocabulary


def _check_bpe(model: Mapping[str, Any]) -> None:
    vocab, merges = model.get("vocab"), model.get("merges")
    pairs = merges if isinstance(merges, list) else [None]
    whole = all(
        (isinstance(one, str) and one.count(" ") == 1)
        or (isinstance(one, list) and len(one) == 2 and all(isinstance(x, str) for x in one))
        for one in pairs
    )
    if not isinstance(vocab, dict) or not vocab or not whole:
        raise TokenizerError(
            "tokenizer.json has no vocabulary or damaged merges", hint=DOWNLOAD_HINT
        )
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise TokenizerError(f"tokenizer.json has a {key}", hint=_BPE_HINT)


def pre_tokenizer(said: Any, *, ignore_merges: bool) -> str:
    """Return llama.cpp's name of a ``pre_tokenizer``.

    Raises:
        TokenizerError: It has none.
    """
    parts = said.get("pretokenizers", [said]) if isinstance(said, dict) else []
    match parts:
        case [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]:
            return "gpt-2"
        case [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        ]:
            return "smollm"
        case [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated"},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]:
            if regex == LLAMA3_SPLIT:
                # The same rule; only the first takes a word that is a token before it merges.
                return "llama-bpe" if ignore_merges else "dbrx"
            if regex == _QWEN2:
                return "qwen2"
    raise TokenizerError("tokenizer.json cuts texts by an unknown rule", hint=_BPE_HINT)
