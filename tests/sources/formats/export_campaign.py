"""Random estates exported to every format that aclog writes, and read back."""

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

from aclog.cli.flags.common import ExportFormat
from aclog.sources.formats.writers import WRITERS
from tests.support.sources.round_trip import round_trip, round_trip_of_state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--estates", type=int, default=300)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    ways = {form: partial(round_trip, form) for form in WRITERS}
    of_states = {form: partial(round_trip_of_state, form) for form in (ExportFormat.JSONL, ExportFormat.AVRO)}
    for form, way in {**of_states, **ways}.items():
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as directory:
            rules = sum(way(seed, Path(directory)) for seed in range(options.estates))
        seconds = time.perf_counter() - start
        lines.append(
            f"{form}: {options.estates} estates, {rules:,} rules, all equal after export and reading ({seconds:.0f} s)"
        )
        print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
