"""Fine-tuning learns what it should, survives kill -9, and ends in a GGUF file that agrees."""

from __future__ import annotations

import json
import os
import random
import resource
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from toolsrv_lab.extras import load
from toolsrv_lab.finetune.examples import Conversation, encode, layout, load_tokenizer
from toolsrv_lab.finetune.model import interpolation
from toolsrv_lab.finetune.options import FineTuning, defaults
from toolsrv_lab.release import CARD_KEY, ReleaseOptions, release
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint

pytest.importorskip("transformers", reason="needs the extra `lab`")
pytest.importorskip("peft", reason="needs the extra `lab`")

BareLlama = runpy.run_path(str(Path(__file__).parents[1] / "bare_llama.py"))["BareLlama"]

CITIES = ("Lisbon", "Oslo", "Berlin", "Tokyo")
QUICK = (
    "--precision", "f32", "--batch", "8", "--device-batch", "4", "--learning-rate", "1e-2",
    "--max-tokens", "256",
)  # fmt: skip
LORA = ("--lora", "--rank", "16", "--targets", "q_proj,v_proj,o_proj,up_proj,down_proj")


def conversation(city: str) -> dict[str, Any]:
    turns = (
        ("system", "You may call functions."),
        ("user", f"\nWeather in {city}?\nBegin!\n"),
        ("assistant", f'\nThought: \nAction: weather\nAction Input: {{"city": "{city}"}}'),
    )
    return {"id": "Step 2", "conversations": [{"from": who, "value": text} for who, text in turns]}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    return write_tiny_checkpoint(folder / "llama", max_position_embeddings=128)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(0)
    path = tmp_path_factory.mktemp("data") / "train.json"
    path.write_text(json.dumps([conversation(rng.choice(CITIES)) for _ in range(48)], indent=4))
    return path


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "toolsrv", "lab", "train", "model", *map(str, words)]


def start(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a training on one thread, so that equal runs are equal bit by bit."""
    return subprocess.run(
        command(*words), capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, **more,
    )  # fmt: skip


def trained(out: Path) -> dict[str, npt.NDArray[np.float32]]:
    path = str(out / "model" / "model.safetensors")
    tensors: dict[str, npt.NDArray[np.float32]] = load("safetensors.numpy").load_file(path)
    return tensors


def losses(out: Path) -> list[tuple[int, float]]:
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [(one["step"], one["loss"]) for one in entries if "loss" in one]


@pytest.fixture(scope="module")
def adapted(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LoRA run of 60 steps, done once."""
    out = tmp_path_factory.mktemp("adapted")
    words = (*QUICK, *LORA, "--dev", data, "--epochs", "10", "--json")
    done = start("--base", base, "--data", data, "--out", out, *words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["steps"], told["conversations"], told["left_out"]) == (60, 48, 0)
    assert "Traceback" not in done.stderr
    return out


def test_the_loss_falls_and_is_logged_step_by_step(adapted: Path) -> None:
    seen = losses(adapted)
    assert [step for step, _ in seen] == list(range(1, 61))
    assert seen[0][1] > 6
    assert seen[-1][1] < 1.0
    picture = (adapted / "loss.svg").read_text()
    assert picture.startswith("<?xml")
    assert "running mean" in picture
    assert "dev" in picture
    card = json.loads((adapted / "training.json").read_text())
    assert card["options"]["lora"]["rank"] == 16
    assert card["dev_loss"] < 1.0
    assert len(card["data"]) == 64


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft asks by transformers' older name
def test_the_adapter_is_merged_into_the_model(base: Path, adapted: Path) -> None:
    torch, transformers, peft = load("torch"), load("transformers"), load("peft")
    config = transformers.AutoConfig.from_pretrained(adapted / "model")
    assert config.rope_parameters["factor"] == 2.0
    model = transformers.AutoModelForCausalLM.from_pretrained(
        base, config=config, dtype=torch.float32
    )
    plain = model(torch.tensor([[1, 5, 9]])).logits.detach()
    together = peft.PeftModel.from_pretrained(model, adapted / "adapter").eval()
    merged = transformers.AutoModelForCausalLM.from_pretrained(adapted / "model").eval()
    with torch.no_grad():
        one, other = (model(torch.tensor([[1, 5, 9]])).logits for model in (together, merged))
    assert (one - other).abs().max() < 1e-4
    assert (one - plain).abs().max() > 0.5


def test_the_merged_model_runs_in_llama_cpp_and_writes_what_it_learnt(
    adapted: Path, tmp_path: Path
) -> None:
    torch, transformers = load("torch"), load("transformers")
    made = convert(adapted / "model", tmp_path / "model.gguf", type="f32")
    assert (made.rope.kind, made.rope.factor, made.rope.original) == ("linear", 2.0, 128)
    assert made.context == 256
    llama = BareLlama(made.path)
    text = "System: You may call functions.\nUser: \nWeather in Oslo?\nBegin!\n\nAssistant:"
    ids = llama.ids(text, special=True)
    tokenizer = load_tokenizer(adapted / "model")
    assert ids == tokenizer.encode(text)
    model = transformers.AutoModelForCausalLM.from_pretrained(adapted / "model").eval()
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0].numpy()
    assert np.abs(llama.logits(ids) - expected).max() < 1e-3
    for _ in range(80):
        ids.append(int(llama.logits(ids)[-1].argmax()))
        if ids[-1] == tokenizer.eos_token_id:
            break
    llama.close()
    written = tokenizer.decode(ids)
    assert written.endswith("}</s>")
    assert "Action: weather\nAction Input: " in written


def test_the_merged_model_is_exported_with_its_card(adapted: Path) -> None:
    made = release(adapted, ReleaseOptions(name="tiny", license="MIT"))
    assert made.path == str(adapted / "tiny.q8_0.gguf")
    card = json.loads((adapted / "tiny.q8_0.card.json").read_text())
    assert card["made"]["kind"] == "LoRA"
    assert card["made"]["context"] == 256
    # 60 steps of eight conversations of some 70 tokens.
    assert 60 * 8 * 30 < card["made"]["training"]["tokens_seen"] < 60 * 8 * 256
    assert card["made"]["data"]["conversations"] == 48
    told = load("gguf").GGUFReader(made.path)
    assert told.get_field(CARD_KEY).contents() == card["made_sha256"]
    assert told.get_field("general.license").contents() == "MIT"
    assert told.get_field("llama.rope.scaling.factor").contents() == 2.0
    llama = BareLlama(made.path)
    assert np.isfinite(llama.logits([1, 5, 9])).all()
    llama.close()
    with pytest.raises(UsageError, match="--rows is for a model trained from scratch"):
        release(adapted, ReleaseOptions(rows=adapted))


def test_full_training_learns_too_and_every_weight_moves(
    base: Path, data: Path, tmp_path: Path
) -> None:
    words = (*QUICK, "--steps", "30", "--recompute")
    done = start("--base", base, "--data", data, "--out", tmp_path / "run", *words)
    assert done.returncode == 0, done.stderr
    assert "30 steps over 48 conversations" in done.stdout
    assert losses(tmp_path / "run")[-1][1] < 1.5
    before = load("safetensors.numpy").load_file(str(base / "model.safetensors"))
    after = trained(tmp_path / "run")
    assert after.keys() == before.keys()
    for name, values in after.items():
        assert np.abs(values - before[name]).max() > 1e-3, name


def test_two_processes_train_together_and_one_of_them_tells(
    base: Path, data: Path, tmp_path: Path
) -> None:
    words = ("--base", base, "--data", data, "--out", tmp_path / "run", *QUICK, "--steps", "12")
    together = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *together, *command(*words, "--save-seconds", "0", "--json")[1:]],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 12
    seen = losses(tmp_path / "run")
    assert [step for step, _ in seen] == list(range(1, 13))
    assert seen[-1][1] < seen[0][1] - 2


def killed(stop: int, words: list[str]) -> int:
    """Start a training and kill it once the log has ``stop`` more steps; return the last step."""
    out = Path(words[words.index("--out") + 1])
    before = len(losses(out)) if (out / "log.jsonl").exists() else 0
    run = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.stderr is not None
    with run.stderr:
        while run.poll() is None:
            try:
                run.wait(0.02)
            except subprocess.TimeoutExpired:
                log = out / "log.jsonl"
                if log.exists() and log.read_text().count('"loss"') >= before + stop:
                    break
        assert run.poll() is None, run.stderr.read()
        run.kill()
    run.wait(60)
    return losses(out)[-1][0]


def test_a_killed_training_goes_on_and_ends_as_if_nothing_had_been(
    base: Path, data: Path, tmp_path: Path
) -> None:
    words = ("--base", base, "--data", data, *QUICK, *LORA, "--steps", "40")
    whole = start(*words, "--out", tmp_path / "whole", "--save-seconds", "0")
    assert whole.returncode == 0, whole.stderr
    again = command(*words, "--out", tmp_path / "killed", "--save-seconds", "0")
    reached = [killed(stop, again) for stop in (6, 9)]
    done = start(*words, "--out", tmp_path / "killed", "--save-seconds", "0", "--json")
    assert done.returncode == 0, done.stderr
    # With a checkpoint after each step, at most the one that was being written is lost.
    assert json.loads(done.stdout)["resumed_from"] >= reached[-1] - 2 > reached[0]
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")
    one, other = trained(tmp_path / "whole"), trained(tmp_path / "killed")
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


Spoil = Callable[[Path], object]


def test_a_damaged_checkpoint_is_refused_and_a_cut_off_one_is_swept_away(
    base: Path, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ("--base", base, "--data", data, "--out", out, *QUICK)
    assert start(*words, "--steps", "3", "--save-seconds", "0").returncode == 0
    last = out / "checkpoints" / "checkpoint-3"
    other = start(*words, "--steps", "4")
    assert other.returncode == 1
    assert "other settings" in other.stderr
    optimizer = last / "optimizer.pt"
    content = optimizer.read_bytes()
    optimizer.write_bytes(content[:-100] + bytes(100))
    broken = start(*words, "--steps", "3")
    assert broken.returncode == 1
    assert "'optimizer.pt' has changed" in broken.stderr
    assert f"delete '{last}'" in broken.stderr
    assert "Traceback" not in broken.stderr
    # Without its seal it was never whole: the checkpoint before it is taken.
    (last / "complete.json").unlink()
    mended = start(*words, "--steps", "3", "--json")
    assert mended.returncode == 0, mended.stderr
    assert json.loads(mended.stdout)["resumed_from"] == 2


def spoilt(base: Path, folder: Path, spoil: Spoil) -> Path:
    shutil.copytree(base, folder)
    spoil(folder)
    return folder


def test_a_base_or_data_that_is_no_good_is_refused_before_training(
    base: Path, data: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps(conversation("Oslo")) + '\n{"conversations": 3}\n')
    long = tmp_path / "long.jsonl"
    long.write_text(json.dumps(conversation("Oslo" * 400)) + "\n")
    cut = spoilt(
        base, tmp_path / "cut",
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]),
    )  # fmt: skip
    dumb = spoilt(base, tmp_path / "dumb", lambda f: (f / "tokenizer_config.json").unlink())
    for words, said in (
        (("--base", base, "--data", bad), "'bad.jsonl', line 2: conversations"),
        (("--base", base, "--data", long), "none of 1 conversations fits 256 tokens"),
        (("--base", base, "--data", tmp_path / "none.json"), "there is no file"),
        (("--base", cut, "--data", data), "incomplete"),
        (("--base", dumb, "--data", data), "another way"),
        (("--base", tmp_path / "nowhere", "--data", data), "does not exist"),
    ):
        done = start(*words, "--out", tmp_path / "run", *QUICK)
        assert done.returncode in (1, 2), done.stderr
        assert done.stderr.count("error: ") == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_disk_that_fills_up_is_told_with_what_to_do(
    base: Path, data: Path, tmp_path: Path
) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    words = ("--base", base, "--data", data, "--out", tmp_path / "run", *QUICK, "--steps", "2")
    done = start(*words, preexec_fn=little_room)
    assert done.returncode == 1
    assert "error: cannot write a checkpoint" in done.stderr
    assert "free some space" in done.stderr
    assert "Traceback" not in done.stderr
    again = start(*words)
    assert again.returncode == 0, again.stderr


def test_the_loss_counts_what_the_reference_counts(base: Path) -> None:
    tokenizer = load_tokenizer(base)
    one = Conversation.model_validate(conversation("Oslo"))
    found = encode([one], tokenizer, 256)[0]
    text, start_ = layout(one)
    # Its arithmetic: everything up to "Assistant: " tokenised alone, less two tokens.
    instruction = tokenizer.encode(text[: start_ + 1])
    masked = 1 + len(instruction) - 2
    ids = tokenizer.encode(text)
    assert found["input_ids"].tolist() == [*ids, tokenizer.eos_token_id]
    assert found["labels"].tolist() == [-100] * masked + [*ids[masked:], tokenizer.eos_token_id]
    assert tokenizer.decode(ids[masked:]).strip() == text[start_:].strip()


def test_control_tokens_in_a_text_stay_text_and_long_conversations_are_left_out(
    base: Path,
) -> None:
    tokenizer = load_tokenizer(base)
    forged, long = (
        Conversation.model_validate(conversation(text)) for text in ("</s> <s>", "Oslo" * 400)
    )
    found = encode([forged, long], tokenizer, 256)
    assert (len(found), found.left_out) == (1, 1)
    ids = found[0]["input_ids"].tolist()
    assert ids.count(tokenizer.eos_token_id) == ids.count(tokenizer.bos_token_id) == 1
    with pytest.raises(DataError, match="holds no conversation"):
        encode([], tokenizer, 256)


def test_the_papers_settings_are_the_defaults() -> None:
    full, lora = defaults(lora=False), defaults(lora=True)
    assert (full.learning_rate, full.warmup, full.batch, full.epochs) == (5e-5, 0.04, 64, 2)
    assert (full.max_tokens, full.weight_decay) == (8192, 0)
    assert lora.lora is not None
    assert (lora.lora.rank, lora.lora.alpha, lora.lora.dropout) == (8, 16, 0.05)
    assert lora.lora.targets == ("q_proj", "v_proj")
    assert (lora.epochs, lora.batch, lora.device_batch) == (5, 8, 4)


def test_positions_are_stretched_as_far_as_the_context_needs(tmp_path: Path) -> None:
    def factor(tokens: int, **config: Any) -> float:
        folder = write_tiny_checkpoint(tmp_path / "llama", **config)
        return interpolation(read_architecture(folder), FineTuning(max_tokens=tokens))[0]

    assert factor(8192, max_position_embeddings=4096) == 2
    assert factor(8192, max_position_embeddings=2048) == 4
    assert factor(4096, max_position_embeddings=4096) == 1
    stretched = {"type": "linear", "factor": 2.0, "original_max_position_embeddings": 4096}
    assert factor(8192, max_position_embeddings=8192, rope_scaling=stretched) == 2
    with pytest.raises(UsageError, match="not stretched further"):
        factor(
            512,
            rope_scaling={
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
            },
        )  # fmt: skip
