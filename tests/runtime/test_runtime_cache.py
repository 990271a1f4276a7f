"""The KV bookkeeping: what it plans is always possible, and it never claims what is not there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.engine.prefix_cache import PrefixPlan, SequenceCache, common_prefix

CARRIED = 512
"""For how many evaluated tokens an idle sequence is carried along here."""


def planned(
    cache: SequenceCache, tokens: list[int], *, reserve: int = 1, head: int = 0
) -> PrefixPlan:
    plan = cache.plan(tokens, reserve=reserve, head=head)
    assert plan is not None
    return plan


TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=24)


@given(TOKENS, TOKENS)
def test_common_prefix_is_the_longest_shared_head(left: list[int], right: list[int]) -> None:
    shared = common_prefix(left, right)
    assert left[:shared] == right[:shared]
    assert shared in {len(left), len(right)} or left[shared] != right[shared]


@given(
    st.lists(TOKENS, min_size=1, max_size=30),
    st.integers(2, 5),
    st.integers(40, 120),
    st.sampled_from((None, 6, 40)),
    st.integers(0, 6),
)
def test_plans_are_sound_and_stay_within_slots(
    prompts: list[list[int]], slots: int, cells: int, carried: int | None, head: int
) -> None:
    cache = SequenceCache(slots=slots, cells=cells, carried=carried)
    memory: dict[int, list[int]] = {}  # what a real KV cache would hold
    for tokens in prompts:
        plan = planned(cache, tokens, reserve=4, head=head)
        for dropped in plan.drop:
            del memory[dropped]
        if plan.source >= 0:
            assert memory[plan.source][: plan.keep] == tokens[: plan.keep]
        else:
            assert plan.keep == 0
        if plan.target != plan.source:
            assert plan.target not in memory
        assert 0 <= plan.target < slots
        assert plan.keep < len(tokens)
        memory[plan.target] = tokens[: plan.keep]
        cache.commit(plan, tokens[: plan.keep])
        memory[plan.target] = list(tokens)
        cache.extend(plan.target, tokens[plan.keep :])
        assert len(memory) == len(cache) <= slots


def test_the_least_recently_used_sequence_goes_first() -> None:
    cache = SequenceCache(slots=2, cells=1000)
    for tokens in ([1, 1, 1], [2, 2, 2]):
        cache.commit(planned(cache, tokens), tokens)
    cache.commit(planned(cache, [1, 1, 1, 5]), [1, 1, 1, 5])
    assert planned(cache, [3, 3]).drop == (1,)


def walked(cache: SequenceCache, tokens: list[int], *, head: int) -> PrefixPlan:
    """Take a sequence for ``tokens``, evaluate what is new, and let it go."""
    plan = planned(cache, tokens, head=head)
    cache.commit(plan, tokens[: plan.keep])
    cache.pin(plan.target, room=1)
    cache.extend(plan.target, tokens[plan.keep :])
    cache.release(plan.target)
    return plan


def test_a_path_that_its_tree_left_is_cut_back_where_carrying_it_costs() -> None:
    for carried, target in ((None, 1), (CARRIED, 0)):
        cache = SequenceCache(slots=8, cells=10_000, carried=carried)
        walked(cache, [1, 1, 1, 5, 6, 7, 7], head=3)
        assert walked(cache, [1, 1, 1, 5, 6, 8, 8], head=3) == PrefixPlan((), 0, target, 5)


def test_a_path_of_another_task_stays_until_much_was_evaluated_since() -> None:
    cache = SequenceCache(slots=8, cells=10_000, carried=CARRIED)
    walked(cache, [1, 1, 1, 5, 6, 7], head=3)
    path = [1, 1, 1, 6, 6]
    assert walked(cache, path, head=3) == PrefixPlan((), 0, 1, 3)
    for _ in range(8):
        path += [4] * (CARRIED // 8)
        assert walked(cache, path, head=3).drop == ()
    assert walked(cache, [*path, 5], head=3).drop == (0,)


def test_a_long_text_is_read_without_what_others_left_where_carrying_it_costs() -> None:
    for carried, drop, target in ((None, (), 2), (CARRIED, (1,), 0)):
        cache = SequenceCache(slots=8, cells=10_000, carried=carried)
        walked(cache, [1, 1, 1, 5, 6], head=3)
        walked(cache, [2, 2, 2, 2], head=3)
        text = [1, 1, 1, *[7] * CARRIED]
        assert walked(cache, text, head=3) == PrefixPlan(drop, 0, target, 3)


def test_a_path_that_somebody_works_on_is_not_cut_back() -> None:
    cache = SequenceCache(slots=8, cells=10_000, carried=CARRIED)
    plan = planned(cache, [1, 2, 3, 4])
    cache.commit(plan, [])
    cache.pin(plan.target, room=1)
    cache.extend(plan.target, [1, 2, 3, 4])
    assert walked(cache, [1, 2, 3, 5], head=1) == PrefixPlan((), 0, 1, 3)
