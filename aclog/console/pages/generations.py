"""Pages where several generations of Kafka may decide: the answer of each, in one page."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import evolve

from aclog.analysis.policy import generation_object, merged
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Generation, GenerationPair, controllers_decide
from aclog.console.pages.page import Cell, Column, Form, Mark, Notice, Page, Parameters, Part, Row, Table
from aclog.console.pages.states import Console, StatesByKafka
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.columns import json_text

View: TypeAlias = Callable[[Console, Parameters], Page]

KAFKA_COLUMN = Column(key="generation", title="Kafka")
"""The column of rows that only one generation has."""
_UNNAMED = (
    "It is unknown which Kafka decides: the rules have ranges of addresses, which Kafka 4.4 matches and Kafka 4.3 does "
    "not. Rows of only one version are marked."
)
"""For viewers who see their own permissions only: no host of a rule, and no node."""


def of_each_kafka(view: View, deciding: Callable[[Console, Parameters], DecidingKafka]) -> View:
    """Return a view that shows the answers of all generations of Kafka that may decide, each named where they differ.

    `deciding` returns the generations that may decide the requests in question.
    """

    def page(console: Console, parameters: Parameters) -> Page:
        """Return the page: of the only generation, or of each."""
        states = console.states
        if isinstance(states, StatesByKafka):
            return view(console, parameters)
        kafka = deciding(console, parameters)
        pages = {
            generation: view(evolve(console, states=StatesByKafka(states=states, generation=generation)), parameters)
            for generation in kafka.generations
        }
        return page_of_each(pages, kafka_notice(console, kafka))

    page.__name__ = view.__name__
    return page


def asked_at(console: Console, parameters: Parameters) -> DecidingKafka:
    """Return the generations of the requests in question, at the moment of a page.

    Raises:
        BadParameterError: no such request; and as States.at.

    """
    kafka, operation = console.states.at(parameters.word("as_of")).kafka, parameters.operation()
    kind = parameters.resource_type() or ResourceType.TOPIC
    if operation in (None, AclOperation.ALL) or controllers_decide(kind, operation):
        return kafka
    return evolve(kafka, generations=kafka.of_brokers)


def kafka_notice(console: Console, kafka: DecidingKafka) -> Notice:
    """Return why several generations may decide, as far as the viewer may see it."""
    return Notice(text=kafka.ambiguity() if console.own is None else _UNNAMED)


def page_of_each(pages: Mapping[Generation, Page], notice: Notice) -> Page:
    """Return the page of several generations; if their answers differ, with both, each named, and the notice."""
    first, *others = pages.values()
    if all(other == first for other in others):
        return first
    answers = {page.answer for page in pages.values()}
    answer = first.answer if len(answers) == 1 else " ".join(_named(each, page) for each, page in pages.items())
    notices = dict.fromkeys(each for page in pages.values() for each in page.notices)
    data = merged({generation: page.data for generation, page in pages.items()}, json_text)
    return evolve(
        first,
        answer=answer,
        mark=first.mark if len({page.mark for page in pages.values()}) == 1 else Mark.WARNING,
        notices=(notice, *notices),
        parts=tuple(_parts({generation: page.parts for generation, page in pages.items()})),
        is_settled=all(page.is_settled for page in pages.values()),
        data=[{**item, **generation_object(only)} if isinstance(item, Mapping) else item for item, only in data],
    )


def _named(generation: Generation, page: Page) -> str:
    return f"On {generation}: {page.answer}{'' if page.answer.endswith('.') else '.'}"


def _parts(parts: Mapping[Generation, Iterable[Part]]) -> Iterator[Part]:
    """Yield the parts of all pages in order: those that are the same once, rows of tables with their generation."""
    by_key = {generation: {part.key: part for part in own} for generation, own in parts.items()}
    for key in dict.fromkeys(key for own in by_key.values() for key in own):
        each = {generation: own[key] for generation, own in by_key.items() if key in own}
        first, *others = each.values()
        is_in_all = len(each) == len(by_key)
        if isinstance(first, Form) or (is_in_all and all(other == first for other in others)):
            yield first
            continue
        table = _table(each) if is_in_all else None
        if table is not None:
            yield table
            continue
        for generation, part in each.items():
            suffix = f"kafka-{generation.value.replace('.', '-')}"
            yield evolve(part, key=f"{key}-{suffix}", title=f"{part.title} (on {generation})")


def _table(parts: Mapping[Generation, Part]) -> Table | None:
    """Return one table with the rows of all, where none is cut; None: they have to be shown apart."""
    tables = {generation: part for generation, part in parts.items() if isinstance(part, Table)}
    first = next(iter(tables.values()), None)
    if first is None or len(tables) < len(parts):
        return None
    for table in tables.values():
        is_whole = table.total in (None, len(table.rows))
        if not is_whole or (table.title, table.columns) != (first.title, first.columns):
            return None
    if not any(table.rows for table in tables.values()):
        return None
    rows = [of_kafka(row, only) for row, only in merged({each: table.rows for each, table in tables.items()})]
    return evolve(
        first,
        columns=(*first.columns, KAFKA_COLUMN),
        rows=tuple(rows),
        total=None if first.total is None else len(rows),
        note="; ".join(dict.fromkeys(table.note for table in tables.values() if table.note)),
    )


def of_kafka(row: Row, only: Generation | GenerationPair | None) -> Row:
    """Return a row with the cell of `KAFKA_COLUMN`."""
    text = str(only) if isinstance(only, GenerationPair) else f"{only} only"
    cell = Cell("") if only is None else Cell(text, mark=Mark.WARNING)
    return evolve(row, cells=(*row.cells, cell), key=row.key if only is None else f"{row.key} {only}")
