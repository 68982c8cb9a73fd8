"""`aclog test`: tests of ACLs."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from click.exceptions import Exit

from aclog.cli.app import source_among
from aclog.cli.flags.commands import GuardFlags, RecordFlags, RunFlags
from aclog.cli.flags.common import FollowerFlags
from aclog.cli.flags.repository import RepositoryFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group
from aclog.sources.acl_lines import STDIN
from aclog.terminal.output import emit

# `aclog test`: tests of rules.


app = Group()


_TESTS = (".yaml", ".yml", ".jsonl", ".jsonl.gz")


def _split(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the source after files of tests: a directory, a checkpoint, or what is no file and has no name of one."""
    if not words or words[-1] == STDIN:
        return None, words
    last = Path(words[-1])
    is_source = last.suffix == ".checkpoint" or last.is_dir() or not (last.exists() or last.name.endswith(_TESTS))
    return (words[-1], words[:-1]) if is_source else (None, words)


@app.command()
@source_among("files", _split)
def test(
    source: SourceFlags,
    flags: RunFlags,
    repository: RepositoryFlags,
    recording: RecordFlags,
    guard: GuardFlags,
    follower: FollowerFlags,
) -> None:
    """Test which principals have access, which have none, and which rule decides.

    A test that passes holds for every request that it describes, not only for
    samples. Tests are
    YAML files, or JSON lines of requests with their decisions. A source flag, such
    as --log or --acls, selects the rules to test; without one, the test file does.
    Exit code 0 if all tests pass, 1 if one fails, 2 for bad input.

    [bold]Examples[/]

      aclog test tests/billing.yaml
      aclog test tests/billing.yaml --acls kafka/ --coverage --min-coverage 80
      aclog test golden.jsonl --log DIR --junit report.xml
      aclog test --record recorded.yaml --log DIR
      aclog test guard.yaml --follow --bootstrap-controller HOST:9093
      aclog test --schema
    """
    if flags.schema:
        print_schema()
        return
    if recording.is_given():
        from aclog.cli.test_report import record_tests

        recording.check(flags, guard)
        record_tests(recording, source, repository)
        return
    from aclog.cli.test_report import SelectingFlags, run_tests

    selection = SelectingFlags(files=flags.files, source=source, repository=repository, globs=flags.run)
    if guard.follow:
        from aclog.cli.test_follow import follow_tests

        guard.check(flags)
        raise Exit(follow_tests(selection, flags, guard, follower))
    guard.refuse()
    follower.refuse("--follow")
    raise Exit(run_tests(selection, flags))


# Prints the JSON schema of YAML tests.


def print_schema() -> None:
    """Print the schema."""
    emit(files("aclog.sources").joinpath("rule_tests.schema.json").read_text(encoding="utf-8").rstrip("\n"))
