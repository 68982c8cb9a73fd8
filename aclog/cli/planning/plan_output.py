"""What a command says of the plan that it made, and the file that it writes it into."""

from collections.abc import Callable
from pathlib import Path

from aclog.analysis.review.document_text import markdown_lines, text_lines
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.output import Output
from aclog.cli.transfer.output import is_written_through, open_output
from aclog.cli.usage_extra import need_usage_extra
from aclog.metalog.errors import ConfigError
from aclog.places.found_place import FoundPlace
from aclog.planning.errors import RefusedError
from aclog.planning.plan import Plan
from aclog.planning.plan_file import PLAN_BEGIN, plan_lines, step_object
from aclog.planning.planner import PlannedChange
from aclog.planning.report.plan_document import document_of
from aclog.planning.report.plan_report import PlanReport
from aclog.planning.report.rule_uses import RuleUses
from aclog.terminal.json_text import json_text
from aclog.terminal.output import emit, say
from aclog.terminal.output_format import OutputFormat
from aclog.terminal.progress import progress

NOTHING, CHANGES = 0, 1
"""Exit codes."""


def print_plan(
    plan: Plan,
    change: PlannedChange,
    found: FoundPlace,
    output: Output,
    *,
    full: bool = False,
    accesses: AccessesFlags | None = None,
) -> None:
    """Print a plan for people, `full` however long it is; as JSON lines only its steps.

    `accesses`: by which to tell when the ACLs that it deletes were last used.

    Raises:
        ConfigError, OSError: the accesses cannot be read.

    """
    if output.form is OutputFormat.JSONL:
        for step in plan.steps:
            emit(json_text(step_object(step)))
        return
    uses = None if accesses is None or not change.removed else _uses(accesses, found, change)
    report = PlanReport(
        name=found.name,
        state=found.state,
        plan=plan,
        change=change,
        uses=uses,
        kafka=found.kafka,
        premises=found.premises,
    )
    with progress("comparing"):
        document = document_of(report, full=full)
    for line in markdown_lines(document) if output.form is OutputFormat.MARKDOWN else text_lines(document):
        say(line)


def print_unless_refused(check: Callable[[], None], show: Callable[[], None], output: Output) -> None:
    """Check a plan and print it; one that is refused is printed, too, but not as JSON lines. Raises as `check`."""
    try:
        check()
    except RefusedError:
        if output.form is not OutputFormat.JSONL:  # people look at what is refused, programs would do it
            show()
        raise
    show()


def check_accesses(accesses: AccessesFlags | None, output: Output) -> None:
    """Check what is given of accesses, before anything is read.

    Raises:
        ConfigError: the extra that reads them is missing, or nothing would tell of them.

    """
    if accesses is None:
        return
    if output.form is OutputFormat.JSONL:
        raise ConfigError("--accesses: the steps as JSON lines do not tell of them: expected --format text or markdown")
    need_usage_extra()


def _uses(accesses: AccessesFlags, found: FoundPlace, change: PlannedChange) -> RuleUses:
    from aclog.cli.planning.rule_uses import read_rule_uses  # here: for access logs alone

    return read_rule_uses(accesses, found, change.removed)


def take_plan_file(path: Path | None) -> None:
    """Remove the plan of an earlier run, before anything is planned: a run that writes none leaves none.

    What is written through, such as a device, holds no earlier plan, and stays.

    Raises:
        ConfigError: the file is something else, such as the journal.
        OSError: it cannot be read or removed.

    """
    if path is None or not path.is_file() or is_written_through(path):
        return
    with path.open("rb") as file:
        begin = file.read(len(PLAN_BEGIN))
    if begin not in {b"", PLAN_BEGIN}:
        raise ConfigError(f"--out {path}: a file that is no plan: expected another name")
    path.unlink()


def write_plan(plan: Plan, path: Path) -> None:
    """Write a PLAN file, whole or not at all, or through a device or a pipe. Raises as open_output."""
    with open_output(path, binary=False) as file:
        for line in plan_lines(plan):
            file.write(f"{line}\n".encode())
