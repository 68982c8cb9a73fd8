"""Single flags that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

TargetLog: TypeAlias = Annotated[
    Path, typer.Option("--log", metavar="DIR", help="The log directory.", show_default=False)
]
ShowSecrets: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--show-secrets", metavar="", help="Print salts, keys and HMACs, which are shown as [cyan]***[/] otherwise."
    ),
]
KeepOddRules: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--keep-odd-rules",
        metavar="",
        help="Write ACLs that CreateAcls refuses, too, with a warning: for the export of a log that has some.",
    ),
]


class ExportFormat(StrEnum):
    """Encoding of an exported state or history, or the format of another tool for the ACLs of a state."""

    AVRO = "avro"
    JSONL = "jsonl"
    KAFKA_ACLS = "kafka-acls"
    KSM = "ksm"
    STRIMZI = "strimzi"
    TERRAFORM = "terraform"
    KAFKA_GITOPS = "kafka-gitops"
    JIKKOU = "jikkou"

    @property
    def is_for_acls_only(self) -> bool:
        """Whether it holds the ACLs of a state and nothing else."""
        return self not in {ExportFormat.AVRO, ExportFormat.JSONL}
