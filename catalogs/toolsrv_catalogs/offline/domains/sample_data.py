"""Sample Data: invented people, companies and filler text. Library: Faker (seeded on request)."""

from __future__ import annotations

import random
from typing import Annotated

from faker import Faker

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, choice
from toolsrv_catalogs.offline.values.number import Seed, whole

tool = Endpoints()
_LOCALES = {
    "english": "en_US", "british": "en_GB", "german": "de_DE", "french": "fr_FR",
    "spanish": "es_ES", "italian": "it_IT", "dutch": "nl_NL", "norwegian": "no_NO",
    "swedish": "sv_SE", "polish": "pl_PL", "portuguese": "pt_BR",
}  # fmt: skip
Style = Annotated[str, choice(*_LOCALES)]
_LATIN = "la"


def _faker(seed: int | None, style: str = "english") -> Faker:
    faker = Faker(_LOCALES.get(style, style))
    faker.seed_instance(random.getrandbits(48) if seed is None else seed)
    return faker


@tool.get("/person")
def fake_person(style: Style = "english", seed: Seed | None = None) -> Answer:
    faker = _faker(seed, style)
    return {
        "name": faker.name(),
        "email": faker.ascii_safe_email(),
        "birth_date": str(faker.date_of_birth(minimum_age=18, maximum_age=90)),
        "job": faker.job(),
    }


@tool.get("/address")
def fake_address(style: Style = "english", seed: Seed | None = None) -> Answer:
    faker = _faker(seed, style)
    return {
        "street": faker.street_address().replace("\n", ", "),
        "city": faker.city(),
        "postcode": faker.postcode(),
    }


@tool.get("/company")
def fake_company(seed: Seed | None = None) -> Answer:
    faker = _faker(seed)
    return {
        "company": faker.company(),
        "slogan": faker.catch_phrase(),
        "website": f"https://{faker.domain_word()}.example",
    }


@tool.get("/lorem")
def lorem_ipsum(sentences: Annotated[int, whole(1, 20)] = 3, seed: Seed | None = None) -> Answer:
    text = _faker(seed, _LATIN).sentences(sentences)
    return {"sentences": sentences, "text": " ".join(text)}
