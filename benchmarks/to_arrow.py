"""All ACLs of an image as an Arrow table and as a data frame, beside reading the same table from Parquet."""

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from aclog.authorizer.acls_image import AclsImage
from aclog.library.image import Image
from aclog.snapshots.image import Image as State
from benchmarks import shapes
from benchmarks.report import Row

TARGET = 1.0
"""CPU seconds for a million rules."""
_ROUNDS = 7


def run(scratch: Path, count: int) -> Iterator[Row]:
    """Yield CPU seconds, of all threads, of each form."""
    image = Image(State(acls=AclsImage.from_columns(shapes.columns(shapes.million(count)))))
    path, target = scratch / "acls.parquet", TARGET if count == 1_000_000 else None
    table = image.to_arrow()
    pq.write_table(table, path)
    assert pq.read_table(path).equals(table)
    forms: dict[str, tuple[Callable[[], object], Callable[[], object], float | None]] = {
        "to_arrow": (image.to_arrow, lambda: pq.read_table(path), target),
        "to_pandas": (image.to_pandas, lambda: pq.read_table(path).to_pandas(), None),
        "polars.DataFrame(image)": (lambda: pl.DataFrame(image), lambda: pl.read_parquet(path), None),
    }
    for what, (ours, theirs, limit) in forms.items():
        figures = [(_seconds(ours), _seconds(theirs)) for _ in range(_ROUNDS)]
        best, parquet = (min(each) for each in zip(*figures, strict=True))
        yield Row(what=f"{what}, {count:,} rules, against reading Parquet", ours=best, theirs=parquet, unit="s")
        if limit is not None:
            yield Row(what=f"{what}, {count:,} rules", ours=best, unit="s", target=limit)


def _seconds(step: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    step()
    return time.process_time() - began
