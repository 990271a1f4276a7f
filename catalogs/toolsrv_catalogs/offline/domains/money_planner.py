"""Money Planner: interest, loans, discounts and savings. Closed formulas, no library."""

from __future__ import annotations

from math import ceil, log
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.number import between, tidy

tool = Endpoints()
Money = Annotated[float, between(0.01, 1e12)]
Rate = Annotated[float, between(0, 100)]
Years = Annotated[float, between(0.01, 100)]


@tool.get("/compound_interest")
def compound_interest(
    amount: Money,
    rate: Rate,
    years: Years,
    times_per_year: Annotated[float, between(1, 365)] = 1,
) -> Answer:
    final = amount * (1 + rate / 100 / times_per_year) ** (times_per_year * years)
    return {
        "amount": tidy(amount, 2),
        "rate": tidy(rate),
        "years": tidy(years),
        "final_amount": tidy(final, 2),
        "interest_earned": tidy(final - amount, 2),
    }


@tool.get("/loan_payment")
def loan_payment(loan: Money, rate: Rate, years: Years) -> Answer:
    months = max(1, round(years * 12))
    monthly = rate / 1200
    payment = loan / months if monthly == 0 else loan * monthly / (1 - (1 + monthly) ** -months)
    return {
        "loan": tidy(loan, 2),
        "rate": tidy(rate),
        "months": months,
        "monthly_payment": tidy(payment, 2),
        "total_interest": tidy(payment * months - loan, 2),
    }


@tool.get("/discount")
def discount(price: Money, percent: Rate) -> Answer:
    saved = price * percent / 100
    return {
        "price": tidy(price, 2),
        "percent": tidy(percent),
        "you_save": tidy(saved, 2),
        "sale_price": tidy(price - saved, 2),
    }


@tool.get("/sales_tax")
def sales_tax(price: Money, tax_percent: Rate) -> Answer:
    tax = price * tax_percent / 100
    return {
        "net_price": tidy(price, 2),
        "tax_percent": tidy(tax_percent),
        "tax": tidy(tax, 2),
        "gross_price": tidy(price + tax, 2),
    }


@tool.get("/savings_goal")
def savings_goal(goal: Money, monthly_saving: Money, rate: Rate = 0) -> Answer:
    monthly = rate / 1200
    exact = (
        goal / monthly_saving
        if monthly == 0
        else log(1 + goal * monthly / monthly_saving) / log(1 + monthly)
    )
    months = max(1, ceil(exact - 1e-9))
    return {
        "goal": tidy(goal, 2),
        "monthly_saving": tidy(monthly_saving, 2),
        "months_needed": months,
        "years_needed": tidy(months / 12, 1),
    }


@tool.get("/inflation")
def inflation(amount: Money, rate: Rate, years: Years) -> Answer:
    return {
        "amount": tidy(amount, 2),
        "rate": tidy(rate),
        "years": tidy(years),
        "future_buying_power": tidy(amount / (1 + rate / 100) ** years, 2),
    }
