"""Ids of lints on the command line: lists of them, and their completion."""

from collections.abc import Iterator


def split_ids(text: str) -> tuple[str, ...]:
    """Return the parts between commas, blanks cut off; empty ones are left out."""
    return tuple(part for each in text.split(",") if (part := each.strip()))


def complete_ids(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the completions of the last id or name of a list, with what each finds."""
    before, comma, last = incomplete.rpartition(",")
    chosen = set(split_ids(before))
    for word, title in complete_one(last):
        if word not in chosen:
            yield f"{before}{comma}{word}", title


def complete_one(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield ids that begin so, or names if no id does, with what each finds."""
    from aclog.analysis.lint.catalogue import LINTS

    by_id = [(lint.id, f"{lint.name}: {lint.title}") for lint in LINTS if lint.id.startswith(incomplete)]
    yield from by_id or ((lint.name, lint.title) for lint in LINTS if lint.name.startswith(incomplete))
