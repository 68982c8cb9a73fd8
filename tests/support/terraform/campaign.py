"""Repositories of Terraform, commit by commit, beside HashiCorp's own parser and values.

python -m tests.support.terraform.campaign --seeds 3 --commits 200 [--out FILE]
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attrs import define, field

from aclog.metalog.errors import ConfigError
from tests.support.terraform.answers import answer, judged, read_directory, recorded
from tests.support.terraform.expressions import expressions
from tests.support.terraform.judge import build, rules_of, values_of
from tests.support.terraform.repository import Commit, begin, history, write_commit


@define
class Tally:
    """What a campaign has seen; owned by it."""

    commits: int = 0
    broken: int = 0
    rules: int = 0
    most: int = 0
    seconds: list[float] = field(factory=list)
    wrong: list[str] = field(factory=list)
    mistakes: Counter[str] = field(factory=Counter)

    def add(self, commit: Commit, directory: Path, verdict: dict[str, object]) -> None:
        """Read a commit and compare."""
        expected = judged(verdict)
        started = time.perf_counter()
        try:
            rules, message = read_directory(directory), ""
        except ConfigError as error:
            rules, message = None, str(error)
        self.seconds.append(time.perf_counter() - started)
        self.commits += 1
        self.rules += len(rules or ())
        self.most = max(self.most, len(rules or ()))
        if commit.broken:
            self.broken += 1
            self.mistakes[commit.message] += 1
        if rules != expected or commit.broken != (rules is None) or (rules is None and not _names_a_line(message)):
            theirs = verdict.get("error", len(expected or ()))
            self.wrong.append(f"{commit.message}: {message or len(rules or ())}; judge: {theirs}")


def _names_a_line(message: str) -> bool:
    file, _, rest = message.partition(":")
    return Path(file).is_file() and rest.partition(":")[0].isdigit()


def run(seeds: int, commits: int, drawn: int) -> str:
    """Run the campaign; return its report."""
    tally, lines = Tally(), ["Terraform beside HashiCorp's own parser and values (make campaign-terraform)", ""]
    with tempfile.TemporaryDirectory() as scratch:
        program = build(Path(scratch))
        for seed in range(1, seeds + 1):
            directory = Path(scratch) / f"repository-{seed}"
            begin(directory)
            for commit in history(seed, commits):
                write_commit(directory, commit)
                tally.add(commit, directory, rules_of(program, directory))
        texts = expressions(seeds + 1, drawn)
        answers = values_of(program, texts)
        differ = [e for e, line in zip(texts, answers, strict=True) if not _same(e, line)]
    typical = sorted(tally.seconds)[len(tally.seconds) // 2]
    lines += [
        f"commits {tally.commits:,}, of which broken on purpose {tally.broken:,} in {len(tally.mistakes)} ways",
        f"rules read {tally.rules:,}, at most {tally.most:,} in a commit; median {typical:.2f} s a commit",
        f"commits that differ from the judge, or whose error names no line: {len(tally.wrong)}",
        *tally.wrong[:10],
        f"expressions {len(texts):,}, with another value than the judge's: {len(differ)}",
        *differ[:10],
    ]
    return "\n".join(lines) + "\n"


def _same(expression: str, line: str) -> bool:
    expected = recorded(line)
    return "unknown" in expected or answer(expression) == expected


def main() -> None:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--expressions", type=int, default=5_000)
    parser.add_argument("--out", type=Path)
    flags = parser.parse_args()
    report = run(flags.seeds, flags.commits, flags.expressions)
    sys.stdout.write(report)
    if flags.out is not None:
        flags.out.write_text(report, encoding="utf-8")
    if "judge, or whose error names no line: 0\n" not in report:
        sys.exit(1)


if __name__ == "__main__":
    main()
