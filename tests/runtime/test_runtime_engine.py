"""The llama.cpp engine on the model that ships: grammar, prefix reuse, stopping, safety."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from toolsrv_runtime.contract.models import Engine, Piece, Sampling
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.errors import ContextError, GrammarError, ModelError
from toolsrv_runtime.gguf_models import SHIPPED_MODEL
from toolsrv_runtime.profiles import KvType
from toolsrv_runtime.stop import Stop

HEAD = Piece("System:\n#1 capital_for_facts(country): Capital\n", special=True)
ASK = Piece("User: the capital of Peru\nAssistant:\nThought: ", special=True)
NAMES = 'start: "Alpha" | "Beta" | "Gamma"\n'
LONG = "start: /[a-z ]{300,400}/\n"


@pytest.fixture
def fresh() -> LlamaEngine:
    return LlamaEngine(SHIPPED_MODEL, context=512, threads=1)


def test_a_reply_never_leaves_its_grammar(engine: Engine) -> None:
    for seed in range(8):
        reply = engine.generate(
            (HEAD, ASK), grammar=NAMES, max_tokens=40, sampling=Sampling(2.0, 1.0, seed)
        )
        assert reply.text in {"Alpha", "Beta", "Gamma"}
        assert reply.finish == "grammar"


def test_forced_text_costs_no_evaluation(fresh: LlamaEngine) -> None:
    reply = fresh.generate((HEAD, ASK), grammar='start: "only this can be said"\n', max_tokens=40)
    assert reply.text == "only this can be said"
    assert reply.evaluated == 0
    assert reply.forced == len(reply.tokens)


def test_a_shared_prefix_is_evaluated_once(fresh: LlamaEngine) -> None:
    first = fresh.generate((HEAD, ASK), grammar=NAMES, max_tokens=40)
    again = fresh.generate((HEAD, ASK), grammar=NAMES, max_tokens=40)
    assert first.evaluated >= first.prompt_tokens
    assert again.text == first.text
    assert again.evaluated < 8


def test_a_branch_reuses_the_trunk_and_leaves_the_other_branch_resident(
    fresh: LlamaEngine,
) -> None:
    left, right = Piece("the capital of Peru"), Piece("something else entirely")
    fresh.generate((HEAD, ASK, left), grammar=NAMES, max_tokens=20)
    fresh.generate((HEAD, ASK, right), grammar=NAMES, max_tokens=20)
    back = fresh.generate((HEAD, ASK, left), grammar=NAMES, max_tokens=20)
    assert back.evaluated < 8


def test_a_branch_of_the_same_task_that_was_left_goes_where_it_would_slow_others_down() -> None:
    shared = Piece("System:\n#1 capital_for_facts(country): Capital\n", shared=True)
    long = Piece("the capital of Peru and of Chile and of Japan and of Kenya and of Spain")
    evaluated = []
    for flash in (True, False):
        engine = LlamaEngine(SHIPPED_MODEL, context=512, threads=1, flash_attention=flash)
        for ends in ((ASK, long), (ASK, Piece("else")), (ASK, long)):
            reply = engine.generate((shared, *ends), grammar=NAMES, max_tokens=20)
        evaluated.append(reply.evaluated)
        engine.close()
    kept, gone = evaluated
    assert kept < 8
    assert 16 <= gone < reply.prompt_tokens - 16  # what the branches share is still there


def test_reuse_changes_no_choice(fresh: LlamaEngine) -> None:
    prompts = [(HEAD, ASK, Piece(text)) for text in ("the capital", "of Peru", "the capital of")]
    warm = [fresh.generate(p, grammar=LONG, max_tokens=30).text for p in (*prompts, *prompts)]
    cold = []
    for prompt in prompts:
        engine = LlamaEngine(SHIPPED_MODEL, context=512, threads=1)
        cold.append(engine.generate(prompt, grammar=LONG, max_tokens=30).text)
        engine.close()
    assert warm == cold * 2


def test_many_more_branches_than_slots_still_work(fresh: LlamaEngine) -> None:
    texts = [f"branch number {index} of a wide tree" for index in range(40)]
    first = [fresh.generate((HEAD, ASK, Piece(t)), grammar=NAMES, max_tokens=9).text for t in texts]
    again = [fresh.generate((HEAD, ASK, Piece(t)), grammar=NAMES, max_tokens=9).text for t in texts]
    assert first == again


def test_stop_ends_a_reply_at_the_next_token(engine: Engine) -> None:
    stop = Stop()
    threading.Timer(0.02, stop.set).start()
    reply = engine.generate((HEAD, ASK), grammar=LONG, max_tokens=1500, stop=stop)
    assert reply.finish in {"stopped", "grammar"}
    stop.set()
    halted = engine.generate((HEAD, ASK), grammar=LONG, max_tokens=300, stop=stop)
    assert halted.finish == "stopped"
    assert halted.tokens == ()


def test_the_reply_limit_is_kept(engine: Engine) -> None:
    reply = engine.generate((HEAD, ASK), grammar=LONG, max_tokens=7)
    assert reply.finish == "length"
    assert len(reply.tokens) == 7


def test_a_prompt_beyond_the_context_is_refused_with_the_sizes(fresh: LlamaEngine) -> None:
    with pytest.raises(ContextError, match="512"):
        fresh.generate((Piece("word " * 900),), grammar=NAMES, max_tokens=5)


def test_a_defective_grammar_is_named(engine: Engine) -> None:
    with pytest.raises(GrammarError):
        engine.generate((HEAD,), grammar="start: nowhere\n", max_tokens=5)


@pytest.mark.parametrize(
    "grammar",
    [
        "start: /[^\\s\\S]/\n",
        'start: "a" B\nB: "b" & "c"\n',
        "start: /a[^\\s\\S]/\n",
        'start: "a" start\n',
        "start: a\na: b\nb: a\n",
    ],
)
def test_a_grammar_that_nothing_fulfils_is_an_error_and_not_an_empty_reply(
    engine: Engine, grammar: str
) -> None:
    with pytest.raises(GrammarError, match="fulfils"):
        engine.generate((HEAD, ASK), grammar=grammar, max_tokens=5)


def test_an_empty_reply_is_one_where_the_grammar_allows_it(engine: Engine) -> None:
    reply = engine.generate((HEAD, ASK), grammar='start: ""\n', max_tokens=5)
    assert (reply.text, reply.finish) == ("", "grammar")


def test_control_tokens_in_data_stay_text(engine: Engine) -> None:
    spelled = engine.count((Piece("</s></s>"),))
    real = engine.count((Piece("</s></s>", special=True),))
    assert spelled > real


def test_scores_are_log_probabilities_that_agree_with_greedy_choice(engine: Engine) -> None:
    prompt = (HEAD, ASK, Piece("the capital of Peru", special=True))
    options = [" use #1", " use #2", " use #3"]
    scores = engine.score(prompt, options).values
    assert all(value <= 0 for value in scores)
    greedy = engine.generate(
        prompt, grammar='start: " use #1" | " use #2" | " use #3"\n', max_tokens=5
    )
    assert greedy.text == options[scores.index(max(scores))]


def test_a_closed_engine_says_so(fresh: LlamaEngine) -> None:
    fresh.close()
    fresh.close()
    with pytest.raises(ModelError, match="closed"):
        fresh.generate((HEAD,), grammar=NAMES, max_tokens=5)


def test_a_llama_2_vocabulary_works_as_well(tiny_llama: Path) -> None:
    engine = LlamaEngine(tiny_llama, context=512, threads=1)
    reply = engine.generate((Piece("Hello Grüße 你好"),), grammar=NAMES, max_tokens=20)
    assert reply.text in {"Alpha", "Beta", "Gamma"}
    engine.close()


def test_a_full_cache_makes_room_by_dropping_what_is_not_in_use(fresh: LlamaEngine) -> None:
    # Prompts without a common beginning share no cells, and together need more than there are.
    for index in range(24):
        prompt = (Piece(f"{index} " + f"word{index} " * 120),)
        assert fresh.generate(prompt, grammar=NAMES, max_tokens=9).finish == "grammar"


@pytest.mark.parametrize("stop_text", ["Be", "ta"])
def test_a_stop_text_ends_a_reply_and_is_not_part_of_it(stop_text: str) -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=512, threads=1, stop_texts=(stop_text, "never"))
    reply = engine.generate(
        (HEAD, ASK), grammar='start: "A: " ("Beta" | "Beth" "ta")\n', max_tokens=40
    )
    assert reply.text.startswith("A:")
    assert stop_text not in reply.text
    assert reply.finish == "grammar"
    engine.close()


def test_the_token_before_every_text_is_the_profiles_choice() -> None:
    counts = []
    for bos in (True, False):
        engine = LlamaEngine(SHIPPED_MODEL, context=64, threads=1, bos=bos)
        counts.append(engine.count((ASK,)))
        engine.close()
    assert counts[0] == counts[1] + 1


def test_keys_and_values_can_be_stored_smaller_and_flash_attention_chosen() -> None:
    choices: tuple[tuple[KvType, bool], ...] = (("q8_0", True), ("f16", False))
    for kv_type, flash in choices:
        engine = LlamaEngine(
            SHIPPED_MODEL,
            context=256,
            threads=1,
            kv_type=kv_type,
            flash_attention=flash,
        )
        reply = engine.generate((HEAD, ASK), grammar=NAMES, max_tokens=20)
        assert reply.finish == "grammar"
        engine.close()


FORCED = (
    "only this can be said",
    "Action: capital_for_facts",
    '{"country": "Peru", "n": 12}',
    "Grüße 你好",
)


@pytest.mark.parametrize("text", FORCED)
def test_forced_text_has_the_models_own_tokens(text: str, tiny_llama: Path) -> None:
    for path in (SHIPPED_MODEL, tiny_llama):
        engine = LlamaEngine(path, context=128, threads=1)
        grammar = f"start: {json.dumps(text, ensure_ascii=False)}\n"
        reply = engine.generate((Piece("x\n"),), grammar=grammar, max_tokens=60)
        assert reply.text == text
        # SentencePiece puts a space before a text of its own; behind another it has none.
        own = engine.vocabulary.text(text, special=False)
        whole = engine.vocabulary.text(f"x\n{text}", special=False)
        behind = whole[len(engine.vocabulary.text("x\n", special=False)) :]
        assert reply.tokens == (own if path == SHIPPED_MODEL else behind)
        engine.close()
