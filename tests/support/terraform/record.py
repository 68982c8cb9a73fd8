"""Records the judge's answers for the tests, which then need no Go.

python -m tests.support.terraform.record
"""

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.support.terraform.answers import digest, judged
from tests.support.terraform.expressions import expressions
from tests.support.terraform.judge import build, rules_of, values_of
from tests.support.terraform.repository import history, write_commit

DATA = Path(__file__).parents[2] / "data" / "terraform"
SEED = 1
DRAWN = 800
COMMITS, TEAMS = 40, 2


def main() -> None:
    """Write the answers to expressions, to each commit of a small history, and to its first commit in full."""
    with tempfile.TemporaryDirectory() as scratch:
        program = build(Path(scratch))
        answers = values_of(program, expressions(SEED, DRAWN))
        settled = [line for line in answers if not json.loads(line).get("unknown")]
        _write("expressions.jsonl", settled)
        repository = Path(scratch) / "repository"
        lines = []
        for commit in history(SEED, COMMITS, TEAMS):
            write_commit(repository, commit)
            rules = judged(rules_of(program, repository))
            lines.append({"commit": commit.message, "answer": digest(rules)})
            if len(lines) == 1:
                _keep(commit.files, rules or [])
        _write("history.jsonl", map(json.dumps, lines))


def _keep(files: dict[str, str], rules: list[tuple[object, ...]]) -> None:
    for path, text in files.items():
        target = DATA / "repository" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    _write("repository.jsonl", [json.dumps(row, ensure_ascii=False) for row in rules])


def _write(name: str, lines: Iterable[str]) -> None:
    (DATA / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
