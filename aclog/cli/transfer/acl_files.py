"""Export of the ACLs of a state as the files of another tool."""

import sys
from pathlib import Path

from aclog.authorizer.acl import acl_text
from aclog.cli.flags.common import ExportFormat
from aclog.cli.transfer.output import open_output
from aclog.metalog.errors import ConfigError
from aclog.snapshots.image import Image
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers.holding import UnfitError
from aclog.sources.formats.writers.writing import write_rules
from aclog.terminal.notices import note, warn


def export_acls(image: Image, export_format: ExportFormat, out: Path | None) -> None:
    """Write the ACLs of a state; a note says what else the state has, and a warning names each ACL that does not fit.

    Raises:
        ConfigError: the format cannot hold some of them, or names that would steer a terminal.
        OSError: the file cannot be written.

    """
    try:
        text = write_rules(AclsFormat(export_format.value), [rule.acl for rule in image.acls])
    except UnfitError as error:
        for acl, why in error.unfit:
            warn(f"{export_format} cannot hold {acl_text(acl)}: {why}")
        raise
    if out is None and sys.stdout.isatty() and not text.replace("\n", "").replace("\t", "").isprintable():
        raise ConfigError("names with characters that do not print: use --out FILE or a pipe")
    with open_output(out, binary=False) as file:
        file.write(text.encode())
    counts = {"SCRAM credentials": len(image.scram), "delegation tokens": len(image.tokens)}
    left = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    if left:
        note(f"{export_format} holds ACLs only: left out: {left}")
