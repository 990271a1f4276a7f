"""Functions as the model sees them: names, schemas, distractors."""

from __future__ import annotations

import random
import re
from collections.abc import Set as AbstractSet
from typing import Any

from toolsrv_lab.conversations.episode import Made, Offered
from toolsrv_lab.conversations.services_b.calls import Call, Need, nested
from toolsrv_lab.conversations.services_b.catalog import Operation, Service, operations


class Offers:
    """The functions of one episode, with the names under which they are offered."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.renamed: dict[str, tuple[str, dict[str, str]]] = {}

    def _rename(self, op: Operation) -> Offered:
        rng = self.rng
        name = re.sub(r"\W", "_", rng.choice(op.names))
        roll = rng.random()
        words = [one for one in re.split(r"_|(?<=[a-z])(?=[A-Z])", name) if one]
        if roll < 0.08:
            name = words[0].lower() + "".join(one[:1].upper() + one[1:] for one in words[1:])
        elif roll < 0.12:
            name = rng.choice(["v1_", "v2_", "api_", "GET_", "do_", f"{op.service.name}_"]) + name
        elif roll < 0.17:
            name = f"{name}_for_{op.service.name}"
        elif roll < 0.21:
            name = "_".join(one.lower() for one in words)
        elif roll < 0.23:
            name = "".join(one[:1].upper() + one[1:] for one in words)
        name = name[:64]
        params = {
            one: (rng.choice(param.names) if rng.random() < 0.6 else param.names[0])
            for one, param in op.params.items()
        }
        if len(set(params.values())) < len(params):
            params = {one: one for one in params}
        schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for one, param in op.params.items():
            into, path = schema, params[one].split(".")
            if "." in one and "." not in params[one]:
                path = one.split(".")
                params[one] = one
            for key in path[:-1]:
                if key not in into["properties"]:
                    into["properties"][key] = {"type": "object", "properties": {}, "required": []}
                if param.required and key not in into["required"]:
                    into["required"].append(key)
                into = into["properties"][key]
            shape = {"type": param.schema["type"]}
            shape |= {key: value for key, value in param.schema.items() if key != "type"}
            if param.texts[0]:
                shape["description"] = rng.choice(param.texts)
            into["properties"][path[-1]] = shape
            if param.required:
                into["required"].append(path[-1])
        text = rng.choice(op.texts)
        if rng.random() < 0.12 and op.service.text:
            text = f"{text} {op.service.text}"
        elif rng.random() < 0.15:
            text = text.rstrip(".")
        self.renamed[op.name] = (name, params)
        return Offered(name, text, schema)

    def offer(self, needed: list[str], leave: AbstractSet[str], service: Service) -> list[Offered]:
        """Return the functions on offer, 3 to 9, shuffled; ``leave``: operations that must not be there."""
        rng, ops = self.rng, operations()
        labels = {ops[one].label for one in [*needed, *leave] if ops[one].label}
        total = rng.randint(max(3, len(needed)), 9)
        homes = {ops[one].service.name for one in needed} | {service.name}
        domains = {ops[one].service.domain for one in needed} | {service.domain}
        ranks: list[list[str]] = [[], [], []]
        for name, op in ops.items():
            if name in needed or name in leave or (op.label and op.label in labels):
                continue
            ranks[
                0 if op.service.name in homes else 1 if op.service.domain in domains else 2
            ].append(name)
        for rank in ranks:
            rng.shuffle(rank)
        chosen, taken = list(needed), set(labels)
        near = rng.choice([2, 4, 9])
        for name in [*ranks[0][: near + 3], *ranks[1][:near], *ranks[2]]:
            if len(chosen) >= total:
                break
            label = ops[name].label
            if label and label in taken:
                continue
            taken.add(label)
            chosen.append(name)
        rng.shuffle(chosen)
        out: list[Offered] = []
        for name in chosen:
            while True:
                one = self._rename(ops[name])
                if all(one.name != other.name for other in out):
                    break
            out.append(one)
        return out

    def step(self, need: Need, call: Call) -> Made:
        """Return a call under the names of its function."""
        name, params = self.renamed[call.op.name]
        flat: dict[str, Any] = {}
        for one in call.op.params:
            value: Any = call.arguments
            for key in one.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                flat[params[one]] = value
        said = {params[one]: words for one, words in call.said.items()}
        return Made(need.text, name, nested(flat), said, call.response, call.error, call.sentence)
