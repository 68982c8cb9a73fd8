"""Decisions on plain Parquet files, which workers read and write on their own.

Columns stay dictionary-encoded from the file that is read to the file that is written: a distinct value is decoded
once, and no row passes through the JVM.
"""

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.index.layout import Int32s
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.access_rows import Batches, parts_of
from aclog.pipeline.authorize import check_added, decide
from aclog.pipeline.session import Sent, broadcast
from aclog.usage.accesses.parquet import ParquetPart
from aclog.usage.arrow import regrouped
from aclog.usage.decisions.decisions import REQUEST_COLUMNS, TEXT_COLUMNS, DecisionTexts, used_numbers
from aclog.usage.decisions.intervals import AclIntervals, Rules

_TIME: Final = pa.timestamp("us", tz="UTC")
_KINDS: Final = frozenset({pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), _TIME})
"""The types of columns, except for text, that Spark reads and writes as they are."""
_ROWS: Final = 1 << 20
_LEAST_ROWS: Final = 1 << 18
"""Of a row group, unless it is the last one of its file: small files come out as one."""
_KINDS_OF_COUNTS: Final[dict[str, Any]] = {"name": pa.string(), "code": pa.int32(), "count": pa.int64()}
_COUNTS: Final = pa.schema(_KINDS_OF_COUNTS)
_DICTIONARY: Final = pa.dictionary(pa.int32(), pa.string())


def common_schema(parts: Sequence[ParquetPart]) -> pa.Schema | None:
    """Return the schema of plain files to write; None if it differs between them, or Spark would change a column."""
    schemas = {path: _written(path) for path in dict.fromkeys(groups.path for part in parts for groups in part.groups)}
    first = next(iter(schemas.values()), None)
    return first if first is not None and all(each == first for each in schemas.values()) else None


def _written(path: str) -> pa.Schema | None:
    fields: list[Any] = []
    for field in pq.read_schema(path):
        kind = field.type.value_type if isinstance(field.type, pa.DictionaryType) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            fields.append(pa.field(field.name, _DICTIONARY))
        elif field.name == "timestamp":  # plain: us or ms, in UTC
            fields.append(pa.field(field.name, _TIME))
        elif kind in _KINDS:
            fields.append(pa.field(field.name, kind))
        else:
            return None
    names = [field.name.lower() for field in fields]
    return pa.schema(fields) if len(set(names)) == len(names) else None


def write_decided(
    spark: SparkSession,
    parts: Sequence[ParquetPart],
    schema: pa.Schema,
    directory: Path,
    *,
    rules: Rules,
    settings: Settings,
    own_time: bool = False,
) -> Counter[int]:
    """Write the rows of files of this schema (`common_schema`) with decision, rule and rule_id to a new directory.

    Return the number of rows by decision code. The workers must find the files and the directory under the same paths.

    Raises:
        ConfigError: the files have a column of one of these names already.

    """
    check_added(schema.names)
    directory.mkdir(parents=True)
    sent = broadcast(spark, parts)
    decider = _Decider(
        parts=sent,
        rules=broadcast(spark, rules.intervals),
        texts=broadcast(spark, rules.texts),
        schema=schema,
        directory=directory,
        settings=settings,
        own_time=own_time,
    )
    numbers = spark.range(0, len(parts), 1, max(len(parts), 1))
    written = numbers.mapInArrow(decider.run, from_arrow_schema(_COUNTS)).toArrow()
    token, counts = secrets.token_hex(16), Counter[int]()
    for number, name in enumerate(sorted(map(str, written.column("name").unique().to_pylist()))):
        # only what a task has reported is published: a task that failed may have written another file
        (directory / name).rename(directory / f"part-{number:05d}-{token}.parquet")
    for code, count in zip(*(written.column(name).to_pylist() for name in ("code", "count")), strict=True):
        counts[code] += count
    for left in directory.glob(".*"):
        left.unlink()
    return counts


@frozen(eq=False, kw_only=True)
class _Decider:
    """What a worker needs."""

    parts: "Sent[Sequence[ParquetPart]]"
    rules: "Sent[AclIntervals]"
    texts: "Sent[DecisionTexts]"
    schema: pa.Schema
    directory: Path
    settings: Settings
    own_time: bool

    def run(self, batches: Batches) -> Batches:
        """Decide some parts, each into one file."""
        written = pa.schema([*self.schema, *(pa.field(name, _DICTIONARY) for name in TEXT_COLUMNS)])
        for number, part in enumerate(parts_of(self.parts, batches)):
            name = f".{number:06d}-{part.groups[0].first:08d}-{secrets.token_hex(16)}"
            counts = Counter[int]()
            # statistics of text cost more than the rest of the write; for equality, readers have the dictionaries
            numbers = [field.name for field in written if field.type != _DICTIONARY]
            with pq.ParquetWriter(
                self.directory / name, written, store_schema=False, write_statistics=numbers or False
            ) as file:
                for batch in map(_joined, regrouped(_batches(part, self.schema), _LEAST_ROWS)):
                    codes, code_of = self._codes(batch)
                    counts.update(dict(zip(codes.tolist(), np.bincount(code_of).tolist(), strict=True)))
                    texts = self.texts.value.of_codes(pa.array(codes, pa.int32()))
                    added = [_repeated(each, code_of) for each in texts]
                    # one row group each: a column has one dictionary
                    file.write_batch(pa.record_batch([*batch.columns, *added], schema=written), len(batch))
            rows = [{"name": name, "code": code, "count": count} for code, count in counts.items()]
            yield pa.RecordBatch.from_pylist(rows, schema=_COUNTS)

    def _codes(self, batch: pa.RecordBatch) -> tuple[Int32s, Int64s]:
        """Return the distinct decision codes, and the position of each row's among them."""
        columns = [batch.column(name) for name in REQUEST_COLUMNS]
        times = [batch.column("timestamp").cast(pa.int64())] if self.own_time else []
        table = pa.table([*columns, *times], names=list(map(str, range(len(columns) + len(times)))))
        codes = np.asarray(decide(table, self.rules, self.settings))
        low = int(codes.min(initial=0))
        used, code_of = used_numbers(codes - low, int(codes.max(initial=0)) - low + 1)
        return (used + low).astype(np.int32), code_of


def _joined(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of batches, each with dictionaries of its own, as one."""
    together = table if table.column(0).num_chunks == 1 else table.unify_dictionaries().combine_chunks()
    return together.to_batches()[0]


def _repeated(texts: Any, text_of: Int64s) -> Any:
    """Return the text of each row as a dictionary; a null is in no dictionary, as Parquet requires."""
    encoded = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(text_of, pa.int64())), encoded.dictionary)


def _batches(part: ParquetPart, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, text as dictionaries. Raises ConfigError: a file has changed, or is damaged."""
    texts = [field.name for field in schema if field.type == _DICTIONARY]
    for groups in part.groups:
        with pa.OSFile(groups.path, "rb") as source:
            if source.size() != groups.size:
                raise ConfigError(f"{groups.name}: replaced by another file while it was being read: run again")
            try:
                file = pq.ParquetFile(source, read_dictionary=texts)
                for group in range(groups.first, groups.end):
                    for batch in file.iter_batches(_ROWS, [group], schema.names, use_threads=False):
                        yield batch.cast(schema)
            except pa.ArrowInvalid as error:
                raise ConfigError(f"{groups.name}: not a Parquet file, or damaged: {error}") from error
