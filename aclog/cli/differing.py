"""Differences of two policies, where several generations of Kafka may decide on both: those of each, and of all."""

from collections.abc import Iterator, Mapping

from aclog.analysis.by_generation import generation_object, merged
from aclog.analysis.comparison import Comparison
from aclog.analysis.regions.region_json import JsonObject
from aclog.authorizer.generation import Generation
from aclog.terminal.json_text import json_text

Compared = Mapping[Generation | None, Comparison]
"""By the generation that decides on both sides; one under None, if that is known."""


def difference_objects(compared: Compared) -> Iterator[JsonObject]:
    """Yield an object for each region, with `generation` where only one decides so."""
    answers = {generation: found.json_lines() for generation, found in compared.items()}
    for line, generation in merged(answers, json_text):
        yield {**line, **generation_object(generation)}
