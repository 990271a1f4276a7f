"""Fine-tunes a LLaMA from its GGUF file on rows of token ids; one file, so that it runs anywhere.

    python chat_training.py --base BASE.gguf --data ROWS.xz … --out DIR --minutes 8

Needs torch, numpy and gguf. The blocks' matrices and all norms are trained, the embeddings stay.
Weights are float32 masters with working copies in bf16. From the middle of the run on the working
copies are the masters as Q4_0 rounds them, and gradients pass straight through: what is trained is the
file that ships, so that its four bits cost next to nothing. Rotary positions are those of the GGUF's
own order of rows (neighbouring pairs), so that nothing is permuted on the way in or out.

``blocks.part0`` … hold the trained tensors as the GGUF's bytes, in the order of ``blocks.json``
(name, type, shape); ``chat_run`` puts them into a file with the base's embeddings. Ctrl-C ends a
run as its last minute does: everything is written, and ``--resume`` goes on from there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import lzma
import math
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import numpy as np
import numpy.typing as npt

torch: Any = importlib.import_module("torch")  # types are checked where there is none, too
functional: Any = torch.nn.functional
Tensor: TypeAlias = Any
Ids = npt.NDArray[np.uint16]
RowIds = tuple[Ids, npt.NDArray[np.bool_]]

MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
NORMS = ("attn_norm", "ffn_norm")
BLOCK = 32
"""Weights of one scale in Q4_0 and Q8_0."""
PIECE = 15 << 20
"""Bytes of one file that comes back."""
_CHECKS = 400
_WARM_UP = 40
_HELD_OUT = 384


class Llama:
    """The weights of a LLaMA and its forward pass; names are those of GGUF."""

    def __init__(self, path: Path, device: str) -> None:
        reader = gguf.GGUFReader(path)
        fields = reader.fields

        def value(key: str) -> Any:
            return fields[f"llama.{key}"].contents()

        self.layers = int(value("block_count"))
        self.heads = int(value("attention.head_count"))
        self.kv_heads = int(value("attention.head_count_kv"))
        self.epsilon = float(value("attention.layer_norm_rms_epsilon"))
        self.base = float(value("rope.freq_base"))
        self.names: list[str] = []
        self.masters: dict[str, Tensor] = {}
        for one in reader.tensors:
            data = np.array(gguf.dequantize(one.data, one.tensor_type), dtype=np.float32)
            tensor = torch.from_numpy(data).to(device)
            if one.name == "token_embd.weight":
                self.embeddings = tensor.to(torch.bfloat16)
            else:
                self.names.append(one.name)
                self.masters[one.name] = tensor
        self.width = self.embeddings.shape[1]
        self.working = {
            name: one.to(torch.bfloat16).requires_grad_() for name, one in self.masters.items()
        }

    def cast(self, quantised: bool) -> None:
        """Bring the working copies up to date, rounded to Q4_0 where ``quantised``."""
        with torch.no_grad():
            for name, master in self.masters.items():
                rounded = q4_0(master) if quantised and master.dim() == 2 else master
                self.working[name].copy_(rounded)

    def hidden(self, ids: Tensor) -> Tensor:
        """Return the last hidden states of (rows, tokens)."""
        w = self.working
        rows, tokens = ids.shape
        size = self.width // self.heads
        cosine, sine = self._turns(tokens, size, ids.device)
        x = functional.embedding(ids, self.embeddings)
        for layer in range(self.layers):
            name = f"blk.{layer}."
            h = functional.rms_norm(x, (self.width,), w[f"{name}attn_norm.weight"], self.epsilon)
            q = functional.linear(h, w[f"{name}attn_q.weight"]).view(rows, tokens, self.heads, size)
            k = functional.linear(h, w[f"{name}attn_k.weight"]).view(
                rows, tokens, self.kv_heads, size
            )
            v = functional.linear(h, w[f"{name}attn_v.weight"]).view(
                rows, tokens, self.kv_heads, size
            )
            q, k = _turned(q, cosine, sine), _turned(k, cosine, sine)
            share = self.heads // self.kv_heads
            k = k.repeat_interleave(share, 2)
            v = v.repeat_interleave(share, 2)
            seen = functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
            )
            seen = seen.transpose(1, 2).reshape(rows, tokens, self.width)
            x = x + functional.linear(seen, w[f"{name}attn_output.weight"])
            h = functional.rms_norm(x, (self.width,), w[f"{name}ffn_norm.weight"], self.epsilon)
            gate = functional.silu(functional.linear(h, w[f"{name}ffn_gate.weight"]))
            up = functional.linear(h, w[f"{name}ffn_up.weight"])
            x = x + functional.linear(gate * up, w[f"{name}ffn_down.weight"])
        return functional.rms_norm(x, (self.width,), w["output_norm.weight"], self.epsilon)

    def loss(self, ids: Tensor, learnt: Tensor) -> Tensor:
        """Return the mean negative log-likelihood of the learnt tokens."""
        hidden = self.hidden(ids)[:, :-1].reshape(-1, self.width)
        at = learnt[:, 1:].reshape(-1).nonzero()[:, 0]
        labels = ids[:, 1:].reshape(-1)[at]
        logits = functional.linear(hidden[at], self.embeddings)
        return functional.cross_entropy(logits.float(), labels)

    def _turns(self, tokens: int, size: int, device: Any) -> tuple[Tensor, Tensor]:
        steps = torch.arange(0, size, 2, device=device, dtype=torch.float32) / size
        angles = torch.outer(
            torch.arange(tokens, device=device, dtype=torch.float32), self.base**-steps
        )
        return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


def _turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return queries or keys turned by their positions, neighbours as pairs."""
    even, odd = x[..., 0::2], x[..., 1::2]
    c, s = cosine[None, :, None, :], sine[None, :, None, :]
    return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2)


def _codes(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return (blocks, 32) codes from 0 to 15 and the blocks' scales, as llama.cpp makes them."""
    blocks = weights.float().reshape(-1, BLOCK)
    at = blocks.abs().argmax(1, keepdim=True)
    scale = (blocks.gather(1, at) / -8).half().float()
    inverse = torch.where(scale == 0, torch.zeros_like(scale), 1 / scale)
    return (blocks * inverse + 8.5).floor().clamp_(0, 15), scale


def q4_0(weights: Tensor) -> Tensor:
    """Return the weights as Q4_0 holds them."""
    codes, scale = _codes(weights)
    return ((codes - 8) * scale).view_as(weights)


def q4_0_bytes(weights: Tensor) -> bytes:
    """Return the weights as the bytes of GGUF's type Q4_0."""
    codes, scale = _codes(weights)
    low, high = codes[:, : BLOCK // 2].byte(), codes[:, BLOCK // 2 :].byte()
    packed = (low | (high << 4)).cpu().numpy()
    scales = scale.half().cpu().numpy().view(np.uint8).reshape(-1, 2)
    return np.concatenate([scales, packed], axis=1).tobytes()


def read_rows(path: Path) -> list[RowIds]:
    """Return the rows of a file of ``conversations.tokens``."""
    raw = lzma.decompress(path.read_bytes())
    head = int.from_bytes(raw[:8], "little")
    counts = json.loads(raw[8 : 8 + head])
    at = 8 + head
    total = counts["tokens"]
    ends = np.frombuffer(raw, np.uint32, counts["rows"], at)
    at += 4 * counts["rows"]
    ids = np.frombuffer(raw, np.uint16, total, at)
    learnt = np.unpackbits(np.frombuffer(raw, np.uint8, offset=at + 2 * total))[:total].astype(bool)
    starts = np.concatenate([[0], ends[:-1]])
    return [(ids[a:b], learnt[a:b]) for a, b in zip(starts, ends, strict=True)]


def batches(rows: list[RowIds], budget: int) -> Iterator[list[RowIds]]:
    """Yield rows of alike length, at most ``budget`` padded tokens together, for ever."""
    while True:
        random.shuffle(rows)
        group = max(512, budget // 12)
        for begin in range(0, len(rows), group):
            ready: list[list[RowIds]] = []
            batch: list[RowIds] = []
            for row in sorted(rows[begin : begin + group], key=lambda one: len(one[0])):
                if batch and (len(batch) + 1) * _padded(len(row[0])) > budget:
                    ready.append(batch)
                    batch = []
                batch.append(row)
            ready.append(batch)
            random.shuffle(ready)
            yield from ready


def _padded(count: int) -> int:
    return -(-count // 64) * 64


def tensors(batch: Sequence[RowIds], device: str) -> tuple[Tensor, Tensor]:
    """Return ids and what is learnt of (rows, padded tokens)."""
    width = _padded(max(len(ids) for ids, _ in batch))
    ids = np.full((len(batch), width), 2, np.int64)
    learnt = np.zeros((len(batch), width), bool)
    for at, (row, mask) in enumerate(batch):
        ids[at, : len(row)] = row
        learnt[at, : len(row)] = mask
    return (
        torch.from_numpy(ids).to(device, non_blocking=True),
        torch.from_numpy(learnt).to(device, non_blocking=True),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Train; see the module. ``arguments`` None are the process's own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--tokens", type=int, default=0, help="padded tokens of a step")
    parser.add_argument(
        "--epochs", type=float, default=4.0, help="stop here though minutes are left"
    )
    parser.add_argument(
        "--decay", type=float, default=0.4, help="last share, the rate falls; 0: none"
    )
    parser.add_argument(
        "--quantise", type=float, default=0.5, help="share from which Q4_0 is trained"
    )
    parser.add_argument("--resume", type=Path, help="masters.pt of an earlier run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    begun = time.time()
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    budget = options.tokens or (49_152 if device == "cuda" else 4_096)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [row for path in options.data for row in read_rows(path)]
    random.shuffle(rows)
    held, rows = rows[:_HELD_OUT], rows[_HELD_OUT:]
    if device == "cpu":
        held = held[:24]
    every = sum(_padded(len(ids)) for ids, _ in rows)
    model = Llama(options.base, device)
    if options.resume:
        for name, one in torch.load(options.resume, map_location=device).items():
            model.masters[name].copy_(one)
        model.cast(False)
    masters = [model.masters[name] for name in model.names]
    for master in masters:
        master.requires_grad_()
    matrices = [one for one in masters if one.dim() == 2]
    vectors = [one for one in masters if one.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.02}, {"params": vectors, "weight_decay": 0.0}],
        lr=options.rate, betas=(0.9, 0.98), fused=True,
    )  # fmt: skip
    log: dict[str, Any] = {
        "options": {key: str(one) for key, one in vars(options).items()},
        "rows": len(rows), "tokens of an epoch": every, "device": device,
        "torch": torch.__version__, "numpy": np.__version__, "steps": [],
    }  # fmt: skip

    def judged() -> float:
        with torch.no_grad():
            some = sorted(held, key=lambda one: len(one[0]))
            found: list[float] = [
                model.loss(*tensors(some[at : at + 16], device)).item()
                for at in range(0, len(some), 16)
            ]
        return sum(found) / len(found)

    print(f"{len(rows)} rows, {every / 1e6:.2f} M padded tokens an epoch, {device}; held {judged():.4f};"
          f" ready after {time.time() - begun:.0f} s", flush=True)  # fmt: skip
    start, step, seen, shown = time.time(), 0, 0, math.nan
    quantised = False
    stopped: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: stopped.append(number))
    for batch in batches(rows, budget):
        spent = max((time.time() - start) / (60 * options.minutes), seen / every / options.epochs)
        if spent >= 1 or stopped:
            break
        quantised = spent >= options.quantise
        rate = options.rate * min(1.0, (step + 1) / _WARM_UP)
        if options.decay and spent > 1 - options.decay:
            rate *= max(0.02, (1 - spent) / options.decay)
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, learnt = tensors(batch, device)
        try:
            loss = model.loss(ids, learnt)
            loss.backward()
        except torch.OutOfMemoryError:
            # One batch of many learnt tokens must not end a run.
            print(f"no memory for a batch of {tuple(ids.shape)}", flush=True)
            for work in model.working.values():
                work.grad = None
            torch.cuda.empty_cache()
            continue
        for name in model.names:
            work = model.working[name]
            model.masters[name].grad = work.grad.float() if work.grad is not None else None
            work.grad = None
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        model.cast(quantised)
        step, seen = step + 1, seen + ids.numel()
        if step % 20 == 0:
            value = loss.item()
            shown = value if math.isnan(shown) else 0.9 * shown + 0.1 * value
            print(f"step {step} {(time.time() - start) / 60:.2f} min loss {shown:.4f} rate {rate:.1e}"
                  f" {seen / 1e6:.1f} M tokens {seen / (time.time() - start):.0f}/s"
                  f"{' q4_0' if quantised else ''}", flush=True)  # fmt: skip
        if step % _CHECKS == 0:
            log["steps"].append({"step": step, "tokens": seen, "loss": shown, "held": judged()})
            print("held", log["steps"][-1]["held"], flush=True)
    signal.signal(signal.SIGINT, before)
    print("held before rounding", judged(), flush=True)
    model.cast(True)
    last = judged()
    log["steps"].append({"step": step, "tokens": seen, "loss": shown, "held": last, "type": "Q4_0"})
    print(f"end: held {last} in Q4_0, {seen} tokens, {step} steps", flush=True)
    write(model, options.out, log)
    torch.save({name: one.detach().to(torch.bfloat16).cpu() for name, one in model.masters.items()},
               options.out / "masters.pt")  # fmt: skip


def write(model: Llama, out: Path, log: dict[str, Any]) -> None:
    """Write the trained tensors as GGUF's bytes, in files of at most ``PIECE``."""
    whole, listed = [], []
    for name in model.names:
        master = model.masters[name].detach()
        if master.dim() == 2:
            whole.append(q4_0_bytes(master))
        else:
            whole.append(master.float().cpu().numpy().tobytes())
        kind = "Q4_0" if master.dim() == 2 else "F32"
        listed.append([name, kind, list(master.shape)])
    data = b"".join(whole)
    (out / "blocks.json").write_text(json.dumps({"tensors": listed, "log": log}))
    for at in range(0, len(data), PIECE):
        (out / f"blocks.part{at // PIECE}").write_bytes(data[at : at + PIECE])


if __name__ == "__main__":
    main()
