"""What is offered for a need whose tool no training row is about."""

from __future__ import annotations

from collections.abc import Sequence

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.evaluation.first_calls import of_category, unseen_request
from toolsrv_registry.api import Api

APIS = load_offline_catalog().apis
CAPITAL = next(api for api in APIS if api.id.endswith("/capital_city"))
OTHERS = [api for api in APIS if api is not CAPITAL]


def offered(hits: Sequence[Api], count: int) -> list[str]:
    (asked,) = unseen_request([CAPITAL], lambda _: hits, 1, offered=count)
    return sorted(api.id for api in asked.offered)


def test_the_api_that_is_asked_for_takes_the_place_of_the_last_hit_where_it_is_missed() -> None:
    ids = [api.id for api in OTHERS]
    assert offered(OTHERS, 5) == sorted([*ids[:4], CAPITAL.id])
    assert offered([*OTHERS[:2], CAPITAL, *OTHERS[2:]], 5) == sorted([*ids[:4], CAPITAL.id])


def test_another_providers_api_that_does_the_same_is_not_offered() -> None:
    twin = CAPITAL.model_copy(update={"id": "Other/tool/capital", "tool": "tool"})
    assert offered([twin, *OTHERS[:3]], 3) == sorted([OTHERS[0].id, OTHERS[1].id, CAPITAL.id])
    assert twin.id not in offered([CAPITAL, twin, *OTHERS], 4)


def test_the_same_seed_asks_the_same_in_the_same_order() -> None:
    once, again = (unseen_request(APIS, lambda _: OTHERS, 20, offered=9, seed=3) for _ in range(2))
    assert once == again
    assert len({one.told.api.id for one in once}) == 20


def test_of_a_category_half_of_the_others_are_of_the_same_tool() -> None:
    for one in unseen_request(APIS, of_category(APIS, 6), 30, offered=6):
        assert len({api.id for api in one.offered}) == 6
        assert one.told.api in one.offered
        tool = [api for api in one.offered if api.tool == one.told.api.tool]
        known = [api for api in APIS if api.tool == one.told.api.tool]
        assert len(tool) >= min(3, len(known))
    first, second = (
        unseen_request(APIS, of_category(APIS, 5), 9, offered=5, seed=1) for _ in range(2)
    )
    assert first == second
