"""docs/how-to/week.md: each line does what the page says, and the command and the library name the same."""

import re
from datetime import UTC, datetime

import pytest

from tests.docs.recorded import estate, shell
from tests.docs.week import PAGE, Task, run, tasks

TASKS = list(tasks(PAGE.read_text("utf-8")))


def names(text: str) -> set[str]:
    """Return the principals and the tokens in a text."""
    return set(re.findall(r"User:[\w*-]+|token-of-\w+", text))


def test_there_are_twenty_tasks_of_one_command_line_and_at_most_three_of_python():
    assert [task.title.partition(".")[0] for task in TASKS] == [str(number) for number in range(1, 21)]
    for task in TASKS:
        assert len(task.code.splitlines()) <= 3
        assert "\\" not in task.command


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.title)
def test_a_task_prints_what_the_page_says(task: Task, tmp_path):
    with estate(tmp_path):
        assert run(task) == task, "run: .venv/bin/python -m tests.docs.week"


def test_a_time_of_yesterday_is_the_same_on_friday_morning(tmp_path, monkeypatch):
    friday = int(datetime(2026, 11, 20, 9, tzinfo=UTC).timestamp() * 1000)
    monkeypatch.setattr("aclog.terminal.moment.current_time_ms", lambda: friday)
    asked = [task for task in TASKS if "'2026-11-19 18:00'" in task.command]
    assert len(asked) == 2
    for task in asked:
        with estate(tmp_path / task.title[:1]):
            spoken = task.command.replace("'2026-11-19 18:00'", "'yesterday 18:00'")
            assert shell(spoken) == task.command_output


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.title)
def test_the_library_names_nobody_whom_the_command_does_not_name(task: Task):
    assert names(task.code_output) <= names(task.command + task.command_output)
    if task.title.partition(".")[0] in {"1", "2", "3", "4", "6", "7", "9", "12", "15"}:
        assert names(task.code_output) == names(task.command_output)
        assert names(task.code_output)
