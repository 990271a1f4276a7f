"""Power Meter: what devices use and cost. Closed formulas, no library."""

from __future__ import annotations

from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.number import Positive, between, tidy

tool = Endpoints()
Watts = Annotated[float, between(0.001, 1e9)]
Price = Annotated[float, between(0, 1000)]


@tool.get("/cost")
def electricity_cost(
    watts: Watts,
    hours_per_day: Annotated[float, between(0, 24)],
    price_per_kwh: Price | None = None,
) -> Answer:
    daily = watts / 1000 * hours_per_day
    answer: Answer = {
        "watts": tidy(watts),
        "kwh_per_month": tidy(daily * 30, 2),
        "kwh_per_year": tidy(daily * 365, 2),
    }
    if price_per_kwh is not None:
        answer["cost_per_month"] = tidy(daily * 30 * price_per_kwh, 2)
        answer["cost_per_year"] = tidy(daily * 365 * price_per_kwh, 2)
    return answer


@tool.get("/battery")
def battery_runtime(capacity_mah: Positive, current_ma: Positive) -> Answer:
    hours = capacity_mah / current_ma
    return {
        "capacity_mah": tidy(capacity_mah),
        "current_ma": tidy(current_ma),
        "runtime_hours": tidy(hours, 2),
    }


@tool.get("/ohms_law")
def ohms_law(volts: Positive, amps: Positive) -> Answer:
    return {
        "volts": tidy(volts),
        "amps": tidy(amps),
        "watts": tidy(volts * amps, 3),
        "ohms": tidy(volts / amps, 3),
    }


@tool.get("/solar")
def solar_yield(
    panel_watts: Watts,
    sun_hours: Annotated[float, between(0, 24)],
    panels: Annotated[float, between(1, 1e6)] = 1,
) -> Answer:
    daily = panel_watts * panels * sun_hours * 0.8 / 1000
    return {
        "panel_watts": tidy(panel_watts),
        "panels": tidy(panels),
        "kwh_per_day": tidy(daily, 2),
        "kwh_per_year": tidy(daily * 365, 0),
    }
