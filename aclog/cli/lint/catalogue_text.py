"""The catalogue of lints for people: `--list` and `--explain`."""

from collections.abc import Iterable, Iterator
from textwrap import wrap

from aclog.analysis.lint.catalogue import BY_ID, LINTS, Lint, parse_lints
from aclog.terminal.columns import Column, Row

_WIDTH = 100


CATALOGUE_COLUMNS = (
    Column(key="lint"),
    Column(key="severity"),
    Column(key="name"),
    Column(key="exact", spare=True),
    Column(key="title", cut=True),
    Column(key="harm", spare=True),
    Column(key="mend", spare=True),
    Column(key="needs", spare=True, flows=True),
)
"""Of a lint."""


def catalogue_rows(texts: Iterable[str] | None) -> Iterator[Row]:
    """Yield all that is to be known of some lints, of all without. Raises ConfigError: there is no such lint."""
    known = LINTS if texts is None else [BY_ID[number] for number in sorted(parse_lints(texts))]
    for lint in known:
        yield {
            "lint": lint.id,
            "severity": lint.severity.value,
            "name": lint.name,
            "exact": lint.exact,
            "title": lint.title,
            "harm": lint.harm,
            "mend": lint.mend,
            "needs": lint.needs,
        }


def list_lines() -> Iterator[str]:
    """Yield a line for each lint: id, severity, name, what it finds."""
    width = max(len(lint.name) for lint in LINTS)
    for lint in LINTS:
        yield f"{lint.id}  {lint.severity.value:<7}  {lint.name:<{width}}  {lint.title}"


def explain_lines(texts: Iterable[str]) -> Iterator[str]:
    """Yield what is to be known of some lints. Raises ConfigError: there is no such lint."""
    for place, number in enumerate(sorted(parse_lints(texts))):
        if place:
            yield ""
        yield from _explained(BY_ID[number])


def _explained(lint: Lint) -> Iterator[str]:
    kind = "a fact" if lint.exact else "a guess from names and habits"
    yield f"{lint.id} {lint.name} ({lint.severity.value}; a finding is {kind})"
    yield from _paragraph("", lint.title)
    yield from _paragraph("", lint.harm)
    yield from _paragraph("Mend: ", lint.mend)
    if lint.needs:
        yield f"  Needs {lint.needs}."


def _paragraph(head: str, text: str) -> Iterator[str]:
    yield from wrap(f"{head}{text}", _WIDTH, initial_indent="  ", subsequent_indent="  ")
