"""Which profile a model gets, the user's own profiles, and contexts that positions cannot carry."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint
from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.gguf_models import inspect_model, load_engine
from toolsrv_runtime.profiles.builtin import MAX_ROPE_FACTOR, ModelFacts, check_profile
from toolsrv_runtime.profiles.choose import UserProfile, choose_profile


def facts(
    name: str = "", *, file: str = "x.gguf", trained: int = 4096, **rope: object
) -> ModelFacts:
    """A LLaMA as its file tells it; ``rope`` is metadata below ``llama.rope.scaling``."""
    metadata = {"general.architecture": "llama", "general.name": name}
    metadata |= {f"llama.rope.scaling.{key}": str(value) for key, value in rope.items()}
    return ModelFacts(metadata, file, trained, compact_tokens=False)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = write_tiny_checkpoint(tmp_path / "tiny", max_position_embeddings=512)
    return Path(convert(folder).path)


def own(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["ToolLLaMA-2-7b-v2", "tool-llama-2", "ToolBench ToolLLaMA 2 7b"])
def test_toolllama_on_llama_2_gets_positions_divided_by_two(name: str) -> None:
    profile, reasons = choose_profile(facts(name))
    assert profile.name == "toolllama-2"
    assert (profile.rope_freq_scale, profile.context) == (0.5, 8192)
    assert (profile.stop, profile.bos, profile.temperature) == (("</s>",), True, 0.5)
    assert "linear" in reasons["rope"]
    check_profile(profile, facts(name))


def test_toolllama_on_llama_1_is_known_by_its_positions_and_gets_four() -> None:
    one = facts(file="ToolLLaMA-7b.Q4_K_M.gguf", trained=2048)
    profile, _ = choose_profile(one)
    assert (profile.name, profile.rope_freq_scale, profile.context) == ("toolllama-1", 0.25, 8192)
    check_profile(profile, one)


@pytest.mark.parametrize(("factor", "name"), [(2, "toolllama-2"), (4, "toolllama-1")])
def test_a_file_that_states_its_stretching_keeps_it(factor: int, name: str) -> None:
    one = facts(
        "ToolLLaMA", trained=8192, type="linear", factor=factor,
        original_context_length=8192 // factor,
    )  # fmt: skip
    profile, reasons = choose_profile(one)
    assert (profile.name, profile.rope_freq_scale) == (name, None)
    assert f"by {factor}, as the file says" in reasons["rope"]
    check_profile(profile, one)


def test_any_other_model_gets_chat_and_no_more_context_than_it_was_trained_for() -> None:
    assert choose_profile(facts("Some Instruct", trained=2048))[0].context == 2048
    profile, reasons = choose_profile(facts("Some Instruct", trained=131_072))
    assert (profile.name, profile.context) == ("chat", 8192)
    assert set(reasons) >= {"name", "format", "context", "rope", "stop", "bos", "temperature"}


def test_a_profile_is_asked_for_by_name_or_as_a_file(tmp_path: Path) -> None:
    assert choose_profile(facts("ToolLLaMA"), asked="chat")[0].name == "chat"
    path = own(
        tmp_path, "mine", 'base = "toolllama-2"\ntemperature = 0.0\nstop = ["</s>", "\\nUser:"]\n'
    )
    for profile, reasons in (
        choose_profile(facts(), asked=str(path)),
        choose_profile(facts(), asked="mine", folder=tmp_path),
    ):
        assert (profile.name, profile.temperature, profile.rope_freq_scale) == ("mine", 0.0, 0.5)
        assert profile.stop == ("</s>", "\nUser:")
        assert str(path) in reasons["stop"]
        assert reasons["name"] == "asked for"


def test_the_users_profile_for_a_model_goes_before_the_built_in_ones(tmp_path: Path) -> None:
    own(tmp_path, "a", 'match = ["*hermes*"]\n')
    own(tmp_path, "b", 'base = "toolllama-2"\nmatch = ["toolllama*"]\ncontext = 6144\n')
    own(tmp_path, "c", 'architecture = "qwen3"\n')
    profile, reasons = choose_profile(facts("ToolLLaMA-2-7b-v2"), folder=tmp_path)
    assert (profile.name, profile.context) == ("b", 6144)
    assert "says that it is for this model" in reasons["name"]
    assert reasons["context"].startswith("set in")
    assert choose_profile(facts(file="Hermes-3.gguf"), folder=tmp_path)[0].name == "a"
    assert choose_profile(facts("other"), folder=tmp_path)[0].name == "chat"


def test_metadata_names_a_profile(tiny: Path) -> None:
    folder = write_tiny_checkpoint(tiny.parent / "ToolLLaMA", max_position_embeddings=2048)
    made = convert(folder, profile="toolllama-1")
    info = inspect_model(Path(made.path))
    assert info.profile.name == "toolllama-1"
    assert info.reasons["name"] == "named in the file's metadata"
    assert not info.problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("context = ", "not TOML"),
        ("context = 1", "context"),
        ("contxt = 4096", "contxt"),
        ("rope_freq_scale = 2.0", "rope_freq_scale"),
        ('base = "gpt"', "toolllama-2"),
        ('stop = [""]', "stop"),
        ("bos = 3", "bos"),
        ("temperature = inf", "temperature"),
        ('format = "xml"', "format"),
        ('format = "remote"', "how servers are asked"),
        ("rope_freq_scale = 1e-30", "must be greater than or equal to"),
        ("foo = 1", "foo = '1': unknown key"),
        ('match = "*"', "match = '*': must be a list of texts"),
        ("match = [3]", "must be a text"),
        ('bos = "x"', "must be true or false"),
        ("context = 100.5", "must be a whole number"),
        ("temperature = []", "must be a number"),
    ],
)
def test_a_profile_that_is_not_acceptable_names_file_and_key(
    tmp_path: Path, text: str, said: str
) -> None:
    path = own(tmp_path, "bad", text)
    with pytest.raises(ProfileError) as caught:
        choose_profile(facts(), asked=str(path))
    assert str(path) in caught.value.message
    assert said in caught.value.message
    assert "Input" not in caught.value.message
    assert caught.value.hint


def test_an_unknown_profile_names_the_known_ones(tmp_path: Path) -> None:
    own(tmp_path, "mine", "")
    with pytest.raises(ProfileError, match="no profile 'nine'") as caught:
        choose_profile(facts(), asked="nine", folder=tmp_path)
    assert "mine, compact, chat, small, toolllama-1, toolllama-2" in caught.value.hint
    with pytest.raises(ProfileError, match="cannot read"):
        choose_profile(facts(), asked=str(tmp_path / "none.toml"))


def test_a_context_that_positions_cannot_carry_is_refused_with_the_value_to_set(
    tiny: Path,
) -> None:
    """Trained for 512: a context of 2,048 needs positions divided by four."""
    long = own(tiny.parent, "long", "context = 2048\n")
    info = inspect_model(tiny, profile=str(long))
    assert "512" in info.problem
    assert "rope_freq_scale = 0.25 or context = 512" in info.remedy
    with pytest.raises(ProfileError) as caught:
        load_engine(tiny, profile=str(long))
    assert "a context of 2,048 tokens" in caught.value.message
    assert caught.value.hint == info.remedy
    own(tiny.parent, "long", "context = 2048\nrope_freq_scale = 0.25\n")
    engine, profile = load_engine(tiny, profile=str(long))
    assert (engine.context, profile.rope_freq_scale) == (2048, 0.25)
    engine.close()


def test_a_file_carries_what_its_positions_are_stretched_to_whatever_it_claims() -> None:
    one = facts("ToolLLaMA-2", trained=8192, type="linear", factor=2, original_context_length=2048)
    profile, _ = choose_profile(one, asked="toolllama-2")
    with pytest.raises(ProfileError, match=r"divided by 2 they carry 4,096") as caught:
        check_profile(profile, one)
    assert "rope_freq_scale = 0.25 or context = 4096" in caught.value.hint
    assert choose_profile(one, asked="chat")[0].context == 4096
    other = facts(trained=131_072, type="longrope", original_context_length=4096)
    assert other.carried(None) == 131_072  # its stretching is in its tensors


@given(st.integers(64, 2**20), st.integers(65, 2**31 - 1))
def test_what_a_refusal_advises_is_accepted(trained: int, context: int) -> None:
    one = facts(trained=trained)
    profile = choose_profile(one)[0].model_copy(update={"context": context})
    try:
        check_profile(profile, one)
    except ProfileError as error:
        said = tomllib.loads(error.hint.removeprefix("in the profile set ").replace(" or ", "\n"))
        mine = UserProfile.model_validate(said)
        assert mine.rope_freq_scale is not None or trained * (MAX_ROPE_FACTOR - 1) < context
        if mine.rope_freq_scale is not None:
            scaled = {"rope_freq_scale": mine.rope_freq_scale}
            check_profile(profile.model_copy(update=scaled), one)
        check_profile(profile.model_copy(update={"context": mine.context}), one)
    else:
        assert context <= trained


def test_a_wrong_factor_for_toolllama_is_refused_too() -> None:
    one = facts("some llama 1", trained=2048)
    profile, _ = choose_profile(one, asked="toolllama-2")
    with pytest.raises(ProfileError) as caught:
        check_profile(profile, one)
    assert "rope_freq_scale = 0.25 or context = 4096" in caught.value.hint


def test_stop_texts_and_the_first_token_of_a_profile_reach_the_engine(tiny: Path) -> None:
    from toolsrv_runtime.contract.models import Piece  # noqa: PLC0415 - beside the engine

    prompt = (Piece("hello"),)
    counts = {}
    for bos in ("true", "false"):
        path = own(tiny.parent, f"bos_{bos}", f'bos = {bos}\nstop = ["END"]\n')
        engine, _ = load_engine(tiny, profile=str(path), threads=1)
        counts[bos] = engine.count(prompt)
        reply = engine.generate(prompt, grammar='start: "abc" "END" "def"', max_tokens=40)
        assert reply.text.startswith("a")
        assert "END" not in reply.text
        engine.close()
    assert counts["true"] == counts["false"] + 1


def test_quantised_keys_without_flash_attention_are_refused_with_the_reason() -> None:
    profile, _ = choose_profile(facts(), asked="chat")
    short = profile.model_copy(update={"kv_type": "q8_0"})
    check_profile(short, facts())
    check_profile(profile.model_copy(update={"flash_attention": False}), facts())
    with pytest.raises(ProfileError, match="needs flash attention, and turns that off") as caught:
        check_profile(short.model_copy(update={"flash_attention": False}), facts())
    assert 'kv_type = "f16"' in caught.value.hint
