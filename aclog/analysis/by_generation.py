"""Answers of which several generations of Kafka may each give their own: what all give, and what only one gives."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from aclog.authorizer.generation import Generation

T = TypeVar("T")


def _itself(value: object) -> Hashable:
    return value


def merged(
    answers: Mapping[Generation, Iterable[T]] | Mapping[Generation | None, Iterable[T]],
    key: Callable[[T], Hashable] = _itself,
) -> Iterator[tuple[T, Generation | None]]:
    """Yield what the answers of all generations contain, with the generation of what only one contains.

    `key`: what two generations must agree on, for a value to be that of both. With one generation nothing is compared,
    and nothing is read ahead.
    """
    if len(answers) == 1:
        yield from ((value, None) for values in answers.values() for value in values)
        return
    keyed = {each: {key(value): value for value in values} for each, values in answers.items()}
    for each, own in keyed.items():
        for name, value in own.items():
            holding = [other for other, values in keyed.items() if name in values]
            if len(holding) == 1:
                yield value, each
            elif holding[0] is each:
                yield value, None


def only_on(generation: Generation | None) -> str:
    """Return such as ` (on Kafka 4.4 only)`; empty for what holds on all."""
    return "" if generation is None else f" (on {generation} only)"


def marked(
    answers: Mapping[Generation, Iterable[object]] | Mapping[Generation | None, Iterable[object]],
) -> Iterator[str]:
    """Yield the texts of what the answers contain; what only one generation says ends with `only_on`."""
    yield from (f"{value}{only_on(only)}" for value, only in merged(answers, str))


def generation_object(generation: Generation | None) -> dict[str, str]:
    """Return the same for JSON: the key `generation`; nothing for what holds on all."""
    return {} if generation is None else {"generation": generation.value}
