"""Differences of two policies, where several generations of Kafka may decide on both: those of each, and of all."""

from collections.abc import Hashable, Iterator, Mapping

from aclog.analysis.by_generation import generation_object, merged, only_on
from aclog.analysis.comparison import Comparison
from aclog.analysis.regions.region_json import JsonObject
from aclog.analysis.rows.row_report import ReportRow, row_cells, row_lines
from aclog.authorizer.generation import Generation
from aclog.terminal.json_text import json_text

Compared = Mapping[Generation | None, Comparison]
"""By the generation that decides on both sides; one under None, if that is known."""


def difference_objects(compared: Compared) -> Iterator[JsonObject]:
    """Yield an object for each region, with `generation` where only one decides so."""
    answers = {generation: found.json_lines() for generation, found in compared.items()}
    for line, generation in merged(answers, json_text):
        yield {**line, **generation_object(generation)}


def difference_rows(compared: Compared) -> Iterator[tuple[ReportRow, Generation | None]]:
    """Yield the rows for people, with the generation that alone decides so."""
    yield from merged({generation: found.rows() for generation, found in compared.items()}, _row_key)


def difference_lines(compared: Compared) -> Iterator[Iterator[str]]:
    """Yield the lines of each row."""
    for row, generation in difference_rows(compared):
        first, *more = row_lines(row)
        yield iter((first + only_on(generation), *more))


def _row_key(row: ReportRow) -> Hashable:
    return row_cells(row)
