"""Generator of episodes over hand-written services, half B: everyday life to software.

``python -m toolsrv_lab.conversations.services_b`` writes them.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolsrv_lab.conversations.episode import Episode, check, require, write
from toolsrv_lab.conversations.services_b.calls import Need, NeedMaker
from toolsrv_lab.conversations.services_b.catalog import (
    Operation,
    Service,
    Slot,
    all_services,
    operations,
)
from toolsrv_lab.conversations.services_b.offers import Offers
from toolsrv_lab.conversations.services_b.task import REASONS, UNSERVED, compose

SOURCE = "services_b"


class _Maker(NeedMaker):
    """Makes one episode."""

    def episode(self) -> Episode:
        """Return an episode; LookupError where the draw came to nothing."""
        rng, services = self.rng, all_services()
        offers = Offers(rng)
        full = [one for one in services if any(op.groups for op in one.ops)]
        service = rng.choices(full, [len(one.ops) ** 0.7 for one in full])[0]
        roll = rng.random()
        needs: list[Need] = []
        leave: set[str] = set()
        if roll < 0.085:
            need, left = self.lacking(service)
            task = self._task([need], service)
            functions = offers.offer([], {left} if left else set(), service)
            return Episode(
                SOURCE,
                self.now.isoformat(),
                task,
                functions,
                reason=rng.choice(REASONS).format(need.reason),
            )
        ops = [one for one in service.ops if one.groups]
        other = [
            op for one in services if one.domain == service.domain for op in one.ops if op.groups
        ]
        anyone = [op for one in services for op in one.ops if op.groups]
        if roll < 0.20:
            chains = [
                one
                for home in services
                if home is service or rng.random() < 0.5
                for one in home.chains
            ]
            needs.append(self.chain(rng.choice(chains)))
            service = needs[0].calls[0].op.service
            if rng.random() < 0.25:
                needs.append(self._another(ops, other, anyone, needs))
        elif roll < 0.30:
            many = [
                op
                for op in anyone
                if any(
                    isinstance(s, Slot) and s.many
                    for g in op.groups.values()
                    for p in g.phrases
                    for s in p
                )
            ]
            near = [op for op in many if op.service is service] or many
            needs.append(self.need(rng.choice(near), many=rng.choice([2, 2, 3, 3, 4])))
            service = needs[0].calls[0].op.service
            if rng.random() < 0.25:
                needs.append(self._another(ops, other, anyone, needs))
        elif roll < 0.37:
            needs.append(self._retried(ops, anyone))
            service = needs[0].calls[0].op.service
            if rng.random() < 0.3:
                needs.append(self._another(ops, other, anyone, needs))
        elif roll < 0.41:
            ready = [op for op in ops if op.failures] or [op for op in anyone if op.failures]
            needs.append(self.need(rng.choice(ready), fail="end"))
            service = needs[0].calls[0].op.service
            if rng.random() < 0.5:
                needs.append(self._another(ops, other, anyone, needs))
        else:
            needs.append(self.need(rng.choice(ops)))
            for _ in range(rng.choices([0, 1, 2, 3], [40, 35, 18, 7])[0]):
                needs.append(self._another(ops, other, anyone, needs))
        unserved: list[Need] = []
        if rng.random() < 0.035:
            lack, left = self.lacking(service if rng.random() < 0.7 else rng.choice(full))
            used = {call.op.name for need in needs for call in need.calls}
            if left in used:
                raise LookupError("the operation serves another part")
            leave |= {left} if left else set()
            unserved.append(lack)
        everything = needs + unserved
        rng.shuffle(everything)
        task = self._task(everything, service)
        order = [need for need in everything if need.calls]
        names = list(dict.fromkeys(call.op.name for need in order for call in need.calls))
        labels = [operations()[one].label for one in names if operations()[one].label]
        if len(set(labels)) < len(labels) or (unserved and unserved[0].reason in labels):
            raise LookupError("two operations for one thing")
        functions = offers.offer(names, leave, service)
        steps = [offers.step(need, call) for need in order for call in need.calls]
        if any(words not in task for step in steps for words in step.said.values()):
            raise LookupError("words shared by two parts were misspelt in one")
        told: list[str] = []
        for need in everything:
            if not need.calls:
                told.append(rng.choice(UNSERVED).format(need.reason))
            else:
                lines = [call.sentence for call in need.calls if call.sentence] + (
                    [need.tell] if need.tell else []
                )
                told.append(self._together(lines))
        return Episode(
            SOURCE,
            self.now.isoformat(),
            task,
            functions,
            steps,
            self._together(told),
            "",
            [one.text for one in unserved],
        )

    def _retried(self, ops: list[Operation], anyone: list[Operation]) -> Need:
        """Return a need whose first call fails with an error that contains the right value."""
        for attempt in range(20):
            try:
                return self.need(self.rng.choice(ops if attempt < 5 else anyone), fail="retry")
            except LookupError:
                continue
        raise LookupError("no mistake to make")

    def _another(
        self,
        ops: list[Operation],
        other: list[Operation],
        anyone: list[Operation],
        needs: list[Need],
    ) -> Need:
        used = {call.op.name for need in needs for call in need.calls}
        roll = self.rng.random()
        pool = [
            op
            for op in (ops if roll < 0.5 else other if roll < 0.7 else anyone)
            if op.name not in used
        ]
        if not pool:
            pool = [op for op in anyone if op.name not in used]
        return self.need(self.rng.choice(pool))

    def _together(self, lines: list[str]) -> str:
        out = lines[0]
        for line in lines[1:]:
            if (
                self.rng.random() < 0.25
                and out.endswith(".")
                and re.match(r"(The|It|There|Your) ", line)
                and len(out) < 160
            ):
                out = f"{out[:-1]}{self.rng.choice([', and ', '; ', ', while '])}{line[0].lower()}{line[1:]}"
            else:
                out += f" {line}"
        return out

    def _task(self, needs: Sequence[Need], service: Service) -> str:
        return compose(needs, service, self.rng, lower=self.lower)


def _check(episode: Episode) -> None:
    check(episode)
    require(len(episode.functions) >= 3, "less than three functions")
    require("{" not in episode.answer, f"an expression is left: {episode.answer!r}")
    absent = "None" in episode.answer.replace("None of", "")
    require(not absent, f"an absent value is shown: {episode.answer!r}")


def episodes(seed: int, count: int) -> Iterator[Episode]:
    """Yield ``count`` episodes, all with different tasks."""
    rng = random.Random(f"{SOURCE} {seed}")
    seen: set[str] = set()
    while len(seen) < count:
        maker = _Maker(random.Random(rng.getrandbits(64)))
        try:
            one = maker.episode()
        except LookupError:
            continue
        if one.task in seen:
            continue
        seen.add(one.task)
        _check(one)
        yield one


def main() -> None:
    """Write episodes to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    print(write(episodes(options.seed, options.count), options.file))


__all__ = ["episodes", "main"]
