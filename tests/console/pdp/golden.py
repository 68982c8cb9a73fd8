"""What the real StandardAuthorizer answered, asked of a decision point in batches; as a module it asks all."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings, name_text
from tests.support.models.golden import NUMBERS, GoldenEstate, load
from tests.support.web.asgi import post
from tests.support.web.points import HeldSource, image_of, point_of

_BATCH = 1000


def differences(number: str) -> tuple[int, list[str]]:
    """How many requests of an estate were asked, and which were answered otherwise than Kafka did."""
    estate = load(number)
    settings = Settings.of_texts(estate.super_users, estate.allow_everyone)
    app = point_of(HeldSource(image_of(*dict.fromkeys(estate.acls))), settings=settings).app()
    questions = list(_questions(estate))
    found = []
    for begin in range(0, len(questions), _BATCH):
        some = questions[begin : begin + _BATCH]
        answers = post(app, "/access/v1/evaluations", {"evaluations": [question for question, _ in some]}).json
        for (question, expected), answer in zip(some, answers["evaluations"], strict=True):
            if answer["decision"] is not expected:
                found.append(f"{number}: {question}: {answer}")
    return len(questions), found


def _questions(estate: GoldenEstate) -> Iterator[tuple[dict[str, object], bool]]:
    for asked, answer in zip(estate.requests, estate.answers, strict=True):
        kind, colon, name = asked.principal.partition(":")
        is_asked = asked.resource_name and colon and kind and name and asked.operation in set(AclOperation)
        if not is_asked or asked.operation <= AclOperation.ALL or asked.resource_type not in set(ResourceType):
            continue
        if answer.letter == "H" or "StringIndexOutOfBounds" in answer.rule:  # Kafka trips over its own bug
            continue
        if asked.resource_type <= ResourceType.ANY or not _is_unicode(asked.principal, asked.resource_name or ""):
            continue
        if asked.resource_type == ResourceType.TOPIC and "*" in asked.resource_name:  # no topic: such an id is refused
            continue
        question = {
            "subject": {"type": kind, "id": name},
            "action": {"name": AclOperation(asked.operation).name},
            "resource": {"type": ResourceType(asked.resource_type).name, "id": name_text(asked.resource_name)},
            "context": {"host": asked.host},
        }
        yield question, answer.letter == "A"


def _is_unicode(*texts: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for text in texts for character in text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    asked, wrong = 0, []
    for number in NUMBERS:
        count, found = differences(number)
        asked, wrong = asked + count, [*wrong, *found]
    text = f"{asked:,} decisions of the real StandardAuthorizer asked in batches of {_BATCH:,}: {len(wrong):,} differ"
    print(text, *wrong[:20], sep="\n")
    if options.out is not None:
        options.out.write_text(f"{text}\n")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
