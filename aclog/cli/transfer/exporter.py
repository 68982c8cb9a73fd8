"""Export of a state as rows, in Avro or JSON lines."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from aclog.cli.flags.common import ExportFormat
from aclog.cli.transfer.avro.files import IMAGE, Row, write_rows
from aclog.cli.transfer.json_rows import row_line
from aclog.cli.transfer.output import open_output
from aclog.cli.transfer.rows import keyless_rows, row_of
from aclog.metalog.codec import decode_record
from aclog.metalog.control_records import encode_control
from aclog.metalog.records import MetadataRecord
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.terminal.progress import Advance, progress

_STEP = 1000


def export_image(image: Image, export_format: ExportFormat, out: Path | None, *, show_secrets: bool) -> None:
    """Write a state.

    Raises:
        ConfigError: Avro output to a terminal.
        OSError: the file cannot be written.

    """
    total = len(image.acls) + len(image.cluster) + len(image.opaque)
    with progress("exporting", "rows", streams=out is None) as advance:
        records = (row_of(record, show_secrets=show_secrets) for record in image_records(image))
        rows = chain(records, keyless_rows(image.scram.keyless))
        write_export(counted([_provenance_row(image)], rows, advance, total), IMAGE, export_format, out)


def image_records(image: Image) -> Iterator[MetadataRecord]:
    """Yield the records of a state in the order of a checkpoint."""
    yield from image.features.records()  # first, as in Kafka: they set the metadata.version for the rest
    yield from image.cluster.records(image.features.level(METADATA_VERSION))
    yield from map(decode_record, image.opaque.values())
    yield from map(decode_record, image.acls.records())
    yield from image.scram.records()
    yield from image.tokens.records()


def _provenance_row(image: Image) -> Row:
    provenance = image.provenance
    voters = None if provenance.voters is None else encode_control(provenance.voters)[1]
    return {
        "provenance": {
            "endOffset": provenance.end_offset,
            "epoch": provenance.epoch,
            "timestamp": provenance.timestamp,
            "kraftVersion": provenance.kraft_version,
            "voters": voters,
        }
    }


def write_export(rows: Iterable[Row], schema: str, export_format: ExportFormat, out: Path | None) -> None:
    """Write rows of an export schema. Raises as export_image."""
    with open_output(out, binary=export_format is ExportFormat.AVRO) as file:
        if export_format is ExportFormat.AVRO:
            write_rows(file, schema, rows)
        else:
            for row in rows:
                file.write(row_line(row).encode() + b"\n")


def counted(first: Iterable[Row], rows: Iterable[Row], advance: Advance, total: int | None) -> Iterator[Row]:
    """Yield the rows, reporting progress."""
    yield from first
    for number, row in enumerate(rows):
        if number % _STEP == 0:
            advance(number, total)
        yield row
