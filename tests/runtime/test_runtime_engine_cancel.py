"""Cancelling calls of the engine at random moments: at most one more token, and nothing lost."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsrv_runtime.contract.models import Completion, Piece
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.gguf_models import SHIPPED_MODEL
from toolsrv_runtime.stop import Stop

HEAD = Piece("System:\n#1 capital_for_facts(country): Capital\n" * 4, special=True)
FREE = "start: /[a-z ]{300,400}/\n"
NAMES = 'start: "Alpha" | "Beta" | "Gamma"\n'


class CountedStop(Stop):
    """Set once it has been asked ``looks`` times; says how many decodes followed."""

    def __init__(self, engine: LlamaEngine, looks: int) -> None:
        super().__init__()
        self._engine = engine
        self._looks = looks
        self.steps: int | None = None

    def is_set(self) -> bool:
        """Count, and note the engine's steps when the wish to stop comes up."""
        self._looks -= 1
        if self._looks == 0:
            self.steps = self._engine.counts.steps
            self.set()
        return super().is_set()


def resident_pages() -> int:
    """Return this process's resident memory in pages of 4 KiB."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


def test_no_token_is_evaluated_after_the_wish_to_stop(tiny_llama: Path) -> None:
    for path in (SHIPPED_MODEL, tiny_llama):
        engine = LlamaEngine(path, context=512, threads=1)
        for looks in range(2, 40, 5):
            stop = CountedStop(engine, looks)
            reply = engine.generate(
                (HEAD, Piece(f"{looks} go on")), grammar=FREE, max_tokens=200, stop=stop
            )
            assert reply.finish == "stopped"
            assert stop.steps is not None
            assert engine.counts.steps - stop.steps <= 1
        engine.close()


def test_a_stop_from_another_thread_is_followed_by_at_most_one_token() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1)
    stop, steps = Stop(), list[int]()

    def on_step(counts: object) -> None:
        del counts
        if engine.counts.steps == 20:
            setter = threading.Thread(target=stop.set)
            setter.start()
            setter.join()
        steps.append(engine.counts.steps)

    engine.scheduler.on_step = on_step
    reply = engine.generate((HEAD,), grammar=FREE, max_tokens=300, stop=stop)
    assert reply.finish == "stopped"
    assert steps[-1] <= 21
    engine.close()


@pytest.mark.parametrize("lanes", [pytest.param(1, marks=pytest.mark.nightly), None])
def test_a_hundred_cancellations_at_random_moments_leave_a_sound_engine(lanes: int | None) -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=512, threads=1, lanes=lanes)
    expected = engine.generate((HEAD, Piece("the capital")), grammar=NAMES, max_tokens=20).text
    chance = random.Random(5)
    sizes: list[int] = []

    def cancelled(number: int) -> Completion:
        stop = CountedStop(engine, chance.randint(1, 30))
        prompt = (HEAD, Piece(f"run {number} " * chance.randint(1, 40)))
        return engine.generate(prompt, grammar=FREE, max_tokens=100, stop=stop)

    for round_ in range(25):
        numbers = range(4 * round_, 4 * round_ + 4)
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(cancelled, numbers))
        assert [reply.finish for reply in replies] == ["stopped"] * 4
        sizes.append(resident_pages())
    again = engine.generate((HEAD, Piece("the capital")), grammar=NAMES, max_tokens=20)
    assert again.text == expected
    settled = 5 if lanes else 15  # by then each lane was needed
    assert max(sizes[settled:]) - sizes[settled] < 2048  # 8 MiB
    engine.close()


def test_a_stop_breaks_off_a_decode_that_is_under_way() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1, interruptible=True)
    stop = CountedStop(engine, 40)  # asked many times within the first decode
    reply = engine.generate((Piece("many words " * 150),), grammar=FREE, max_tokens=300, stop=stop)
    assert reply.finish == "stopped"
    assert reply.tokens == ()
    assert reply.evaluated < 256
    after = engine.generate((HEAD, Piece("the capital")), grammar=NAMES, max_tokens=20)
    assert after.finish == "grammar"
    engine.close()
