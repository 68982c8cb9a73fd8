"""`aclog.acl_usage`, `unused`, `denied`, `suggest` and `simulate` return what the commands print as JSON."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from attrs import frozen

import aclog
from tests.support.cli.command import aclog as command

WEEK = Path(__file__).parents[1] / "data/week"
LOG, ACCESSES, RULES = WEEK / "log", WEEK / "accesses.jsonl", WEEK / "rules.jsonl"
AUDIT = WEEK / "kafka-authorizer.log"
END = datetime(2026, 11, 20, tzinfo=UTC)
TRIMMED = "trimmed.jsonl"
"""The rules of the week without some."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a second state, a change, and an index of the week."""
    monkeypatch.chdir(tmp_path)
    Path("others.jsonl").write_text('{"action": "none"}\n')
    rules = RULES.read_text().splitlines(keepends=True)
    Path(TRIMMED).write_text("".join(rules[::2]))
    removed = [{"action": "REMOVE", "rule": json.loads(each)} for each in rules[1::2]]
    Path("change.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in removed))
    command("usage-index", "--log", LOG, "--accesses", ACCESSES, "--index", "index").ok()


@frozen
class Same:
    """A command line, and the call that returns what it prints."""

    line: str
    call: Callable[[], aclog.Report]


CASES = (
    Same(f"usage --log {LOG} --accesses {ACCESSES}", lambda: aclog.acl_usage(LOG, ACCESSES)),
    Same(
        f"usage --acls {RULES} --accesses {ACCESSES} --days 2 --until 2026-11-20 --super-users User:admin",
        lambda: aclog.acl_usage(RULES, [ACCESSES], days=2, until=END, super_users="User:admin"),
    ),
    Same(
        f"usage --acls {RULES} --accesses {AUDIT} --accesses-timezone +02:00 --accesses-format kafka-log --days 3",
        lambda: aclog.acl_usage(
            aclog.open_acls(RULES), str(AUDIT), accesses_timezone="+02:00", accesses_format="kafka-log", days=3
        ),
    ),
    Same(
        f"unused --log {LOG} --index index --days 2 --accesses {ACCESSES}",
        lambda: aclog.unused(LOG, "index", days=2, accesses=ACCESSES),
    ),
    Same(
        f"unused --acls {TRIMMED} --index index --days 1 --until 2026-11-20 --gap 2w --ignore-broker none",
        lambda: aclog.unused(
            TRIMMED, Path("index"), days=1, until=date(2026, 11, 20), gap=timedelta(weeks=2), ignore_brokers="none"
        ),
    ),
    Same(f"denied --log {LOG} --accesses {ACCESSES}", lambda: aclog.denied(LOG, ACCESSES)),
    Same(
        f"denied --acls {TRIMMED} --accesses {ACCESSES} --principal User:billing --any-host",
        lambda: aclog.denied(TRIMMED, ACCESSES, principals="User:billing", any_host=True),
    ),
    Same(f"suggest --log {LOG} --accesses {ACCESSES}", lambda: aclog.suggest(LOG, ACCESSES)),
    Same(
        f"suggest --acls {RULES} --accesses {ACCESSES} --days 5 --fold none --principal User:billing "
        f"--topics {WEEK / 'topics.txt'} --allow-everyone-if-no-acl-found",
        lambda: aclog.suggest(
            RULES,
            ACCESSES,
            days=5,
            fold=None,
            principals=["User:billing"],
            topics=WEEK / "topics.txt",
            allow_everyone_if_no_acl_found=True,
        ),
    ),
    Same(
        f"simulate --acls {RULES} --to-acls {TRIMMED} --accesses {ACCESSES}",
        lambda: aclog.simulate(RULES, TRIMMED, accesses=ACCESSES),
    ),
    Same(
        f"simulate --acls {RULES} --change change.jsonl --accesses {ACCESSES} --kafka-version 4.4",
        lambda: aclog.simulate(RULES, change="change.jsonl", accesses=ACCESSES, kafka_version="4.4"),
    ),
    Same(
        f"simulate --log {LOG} --to-log {LOG} --accesses {ACCESSES}",
        lambda: aclog.simulate(LOG, LOG, accesses=ACCESSES),
    ),
)


@pytest.mark.parametrize("same", CASES, ids=lambda each: each.line.replace(str(WEEK), "WEEK"))
def test_a_function_returns_what_its_command_prints(same: Same, capfd: pytest.CaptureFixture[str]) -> None:
    report = same.call()
    assert capfd.readouterr() == ("", "")
    printed = command(*same.line.split(), "--format", "json")
    assert report.to_dicts() == json.loads(printed.out)
    assert (0 if report.passed else 1) == printed.code
    lines = [line.removeprefix("aclog: ").removeprefix("note: ") for line in printed.err.splitlines()]
    assert sorted(report.notes) == sorted(lines)


def test_the_cases_show_something() -> None:
    """Each kind of answer is there, so that equal answers are no empty ones."""
    reports = [each.call() for each in CASES]
    assert {(report.passed, len(report) > 0) for report in reports} == {(True, True), (False, True), (True, False)}
    assert {row["answer"] for row in aclog.unused(LOG, "index", days=2)} >= {"NEEDED", "NOT_JUDGED"}
    assert {row["change"] for row in aclog.simulate(RULES, TRIMMED, accesses=ACCESSES)} == {"GAINED", "LOST"}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: aclog.acl_usage("nowhere", ACCESSES), "nowhere: no such file or directory"),
        (lambda: aclog.acl_usage(RULES, "nowhere"), "nowhere"),
        (lambda: aclog.acl_usage(RULES, 3), "accesses 3: expected a path, or several"),
        (lambda: aclog.acl_usage(RULES, ACCESSES, days=0), "days 0: expected a number from 1 to 36600"),
        (lambda: aclog.acl_usage(RULES, ACCESSES, until=7), "until 7: expected a time"),
        (lambda: aclog.acl_usage(RULES, ACCESSES, accesses_format="odd"), "odd: expected"),
        (lambda: aclog.acl_usage(RULES, ACCESSES, accesses_timezone="odd"), "odd"),
        (lambda: aclog.acl_usage(RULES, ACCESSES, workers=-1), "workers -1: expected a number of at least 1"),
        (lambda: aclog.acl_usage(RULES, ACCESSES, semantics="odd"), "'odd' is neither"),
        (lambda: aclog.unused(RULES, "nowhere"), "nowhere"),
        (lambda: aclog.unused(RULES, "index", gap="1d"), "gap '1d': expected a timedelta of an hour or more"),
        (lambda: aclog.unused(RULES, "index", ignore_brokers="77"), "77"),
        (lambda: aclog.denied(RULES, "others.jsonl"), "no line is an access"),
        (lambda: aclog.denied(RULES, ACCESSES, principals=3), "principals 3: expected several texts"),
        (lambda: aclog.suggest(RULES, ACCESSES, fold=1), "fold 1: expected a number of at least 2"),
        (lambda: aclog.simulate(RULES, accesses=ACCESSES), "expected exactly one of new and change"),
        (lambda: aclog.simulate(RULES, change=TRIMMED, accesses=ACCESSES), "trimmed.jsonl: line 1"),
    ],
)
def test_what_cannot_be_done_is_one_line(call: Callable[[], aclog.Report], text: str) -> None:
    with pytest.raises(aclog.MetadataError) as error:
        call()
    assert text in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("function", [aclog.acl_usage, aclog.denied, aclog.suggest])
def test_an_unknown_argument_is_a_type_error(function: Callable[..., aclog.Report]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'odd'"):
        function(RULES, ACCESSES, odd=3)
