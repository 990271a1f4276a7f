"""Solve several tasks at once in asynchronous code; a person consents to what changes something."""

from __future__ import annotations

import asyncio

from toolsrv import AsyncToolbox, Consent, ToolsrvError

TASKS = (
    "What is the time difference between London and Sydney?",
    "What is the complementary color of teal?",
    "What is the capital of Peru?",
)


async def confirm(consent: Consent) -> bool:
    """Show a call to the person at the terminal and return whether they allow it."""
    print(f"{consent.request} with {consent.arguments!r}: {consent.reason}")
    return await asyncio.to_thread(input, "Make this call? [y/N] ") == "y"


async def solve(toolbox: AsyncToolbox, task: str) -> None:
    """Solve one task and print its end."""
    try:
        outcome = await toolbox.solve(task, confirm=confirm)
    except ToolsrvError as error:
        print(f"{task}\n  {error.message} ({error.hint})")
        return
    print(f"{task}\n  {outcome.status}: {outcome.answer}")


async def main() -> None:
    """Solve all tasks with one model."""
    async with AsyncToolbox() as toolbox:
        await asyncio.gather(*(solve(toolbox, task) for task in TASKS))


asyncio.run(main())
