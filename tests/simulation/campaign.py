"""Many short seeds of all worlds, in worker processes, in parts that add up: `make simulate-campaign`.

`--seeds 100000 --jobs 2` runs seeds from where the result file ends, or from `--first`. Each part is a row of the file,
which is written again every few hundred seeds: a part that is interrupted counts up to there, and the next one goes on.
"""

import argparse
import multiprocessing
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import field, frozen

from tests.simulation.simulate import SHORT_SECONDS, WORLDS, run_seed

RESULTS = Path("benchmarks/results/simulation-seeds.txt")
_CHUNK = 20
"""Seeds that a worker runs at a time."""
_CHUNKS_OF_A_WORKER = 25
"""Chunks after which a worker is replaced, so that what seeds leave behind does not grow."""
_WRITTEN_AFTER = 10
"""Chunks after which the result file is written."""
_COLUMNS = ("commit", "first", "end", *WORLDS, "virtual hours", "CPU hours", "failures")
_HEAD = (
    f"Seeds of the simulated cluster with {SHORT_SECONDS:g} s of faults each (`make simulate-campaign`), in parts:\n"
    "seeds from `first` up to, not including, `end`, how many of each world, and how many failed.\n"
)


@frozen(kw_only=True)
class Part:
    """Seeds that one commit has run: from `first` up to `end`."""

    commit: str
    first: int
    end: int
    worlds: Counter[str] = field(factory=Counter)
    """Seeds of each world."""
    virtual_hours: float = 0.0
    cpu_hours: float = 0.0
    failures: int = 0

    @property
    def cells(self) -> list[str]:
        """The row of the result file."""
        counts = [self.worlds[name] for name in WORLDS]
        hours = f"{self.virtual_hours:.2f}", f"{self.cpu_hours:.4f}"
        return [self.commit, str(self.first), str(self.end), *map(str, counts), *hours, str(self.failures)]

    @classmethod
    def of_cells(cls, cells: Sequence[str]) -> "Part":
        """Parse a row."""
        commit, first, end, *rest = cells
        *counts, virtual, cpu, failures = rest
        worlds = Counter(dict(zip(WORLDS, map(int, counts), strict=True)))
        return cls(
            commit=commit,
            first=int(first),
            end=int(end),
            worlds=worlds,
            virtual_hours=float(virtual),
            cpu_hours=float(cpu),
            failures=int(failures),
        )

    def with_chunk(self, chunk: "Part") -> "Part":
        """Return this part with the chunk that follows it."""
        if chunk.first != self.end:
            raise ValueError(f"a chunk of seeds begins at {chunk.first}: expected {self.end}")
        return Part(
            commit=self.commit,
            first=self.first,
            end=chunk.end,
            worlds=self.worlds + chunk.worlds,
            virtual_hours=self.virtual_hours + chunk.virtual_hours,
            cpu_hours=self.cpu_hours + chunk.cpu_hours,
            failures=self.failures + chunk.failures,
        )


def parse(text: str) -> list[Part]:
    """Parse a result file; its last line, the sum, is left out."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [Part.of_cells(cells) for cells in rows[2:]]


def render(parts: Iterable[Part]) -> str:
    """Return the result file: a row for each part, and their sum."""
    parts = list(parts)
    lines = [_HEAD, "| " + " | ".join(_COLUMNS) + " |", "|" + " --- |" * len(_COLUMNS)]
    lines += ["| " + " | ".join(each.cells) + " |" for each in parts]
    seeds = sum((sum(each.worlds.values()) for each in parts), 0)
    virtual, cpu = sum(each.virtual_hours for each in parts), sum(each.cpu_hours for each in parts)
    failures = sum(each.failures for each in parts)
    lines.append(f"\nIn all {seeds:,} seeds, {virtual:,.1f} virtual hours, {cpu:.2f} CPU hours, {failures} failures")
    return "\n".join(lines) + "\n"


def run_chunk(chunk: tuple[int, int]) -> tuple[Part, list[str]]:
    """Run seeds in this process; return their part, and a line for each failure."""
    first, end = chunk
    names, worlds, failed, virtual = list(WORLDS), Counter[str](), list[str](), 0.0
    begun = time.process_time()
    for seed in range(first, end):
        world = names[seed % len(names)]
        outcome = run_seed(seed, world=world, seconds=SHORT_SECONDS)
        worlds[world] += 1
        virtual += outcome.seconds
        failed += [f"seed {seed} of world {world}: {each}" for each in outcome.failures]
    part = Part(
        commit="",
        first=first,
        end=end,
        worlds=worlds,
        virtual_hours=virtual / 3600,
        cpu_hours=(time.process_time() - begun) / 3600,
        failures=len({each.partition(":")[0] for each in failed}),
    )
    return part, failed


def _chunks(first: int, end: int) -> Iterator[tuple[int, int]]:
    for start in range(first, end, _CHUNK):
        yield start, min(start + _CHUNK, end)


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()

    changes = git("status", "--porcelain", "-uno", "--", f":!{RESULTS}")  # which an earlier part has written
    return git("rev-parse", "--short=12", "HEAD") + ("+changes" if changes else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a part; return 1 if a seed has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int, help="the first seed; by default the one after those in the result file")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    out: Path = options.out
    parts = parse(out.read_text()) if out.exists() else []
    first = options.first if options.first is not None else max((each.end for each in parts), default=0)
    part = Part(commit=_commit(), first=first, end=first)
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that workers end, too
    workers = multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=_CHUNKS_OF_A_WORKER)
    with workers:
        done = workers.imap(run_chunk, _chunks(first, first + options.seeds))
        for number, (chunk, failed) in enumerate(done, 1):
            part = part.with_chunk(chunk)
            for line in failed:
                print(line, flush=True)
            if failed or not number % _WRITTEN_AFTER or part.end == first + options.seeds:
                out.write_text(render([*parts, part]))
                rate = (part.end - first) / max(part.cpu_hours, 1e-9)
                did = f"seeds {first} to {part.end - 1}: {part.failures} failures"
                took = f"{part.virtual_hours:,.0f} virtual hours, {part.cpu_hours:.2f} CPU hours"
                print(f"{did}; {took}, {rate:,.0f} seeds in each; {time.monotonic() - begun:,.0f} s", flush=True)
    return 1 if part.failures else 0


if __name__ == "__main__":
    sys.exit(main())
