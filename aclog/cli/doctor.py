"""`aclog doctor`: whether aclog and what it is pointed at are as they should be, and what to do if not."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from click.exceptions import Exit

from aclog.cli.app import examines_contexts
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, named_context

if TYPE_CHECKING:
    from aclog.sources.checks import Finding
    from aclog.sources.choice import ChosenSource

app = Group()

_HEALTHY, _FAILING = 0, 1


@app.command()
@examines_contexts
def doctor(source: SourceFlags, output: AnswerFlags) -> None:
    """Check versions, extras, clock, connection, login, permissions and the health of a log, and suggest fixes.

    A source is optional. Each line is ok, warn or fail, with the next step.
    Changes nothing and prints no secrets. Exit code 1 if a line fails.

    [bold]Examples[/]

      aclog doctor
      aclog doctor --bootstrap-server HOST:9093 --command-config FILE
      aclog doctor --log DIR --format jsonl
    """
    from aclog.sources.checks import Level, examination
    from aclog.terminal.columns import Column
    from aclog.terminal.tables import print_rows

    def choose(notify: Callable[[str], None]) -> "ChosenSource | None":
        return source.choose(notify) if source.is_given() else None

    levels: list[Level] = []

    def checks() -> "Iterator[Finding]":
        for each in examination(choose, named_context()):
            levels.append(each.level)
            yield each

    how, findings = output.choose(), checks()
    if how.is_rows:
        columns = (
            Column(key="level"),
            Column(key="check"),
            Column(key="text", cut=True),
            Column(key="todo", flows=True),
        )
        rows = ({"level": each.level, "check": each.check, "text": each.text, "todo": each.todo} for each in findings)
        print_rows(columns, rows, how.form, keys=how.columns)
        for _ in findings:  # those after the end of a pager count as well
            pass
    else:
        _print(findings)
    raise Exit(_FAILING if Level.FAIL in levels else _HEALTHY)


def _print(findings: "Iterable[Finding]") -> None:
    from aclog.metalog.errors import printable
    from aclog.terminal.output import say

    for each in findings:
        todo = f" -> {each.todo}" if each.todo else ""
        say(printable(f"{each.level:<4}  {each.check}: {each.text}{todo}"), flush=True)
