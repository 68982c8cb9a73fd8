"""The flags of `aclog rollback`."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags.plan import JournalFile, MaxDeletes, OtherJournals


@frozen(kw_only=True)
class RollbackFlags:
    """What is undone, and whose rules stay nevertheless."""

    journal: JournalFile
    other_journals: OtherJournals = field(factory=list)
    apply: Annotated[
        str | None,
        typer.Option(
            "--apply",
            metavar="ID",
            help="The apply to undo, with all later ones of this journal; its id, or how that begins.",
            show_default="the newest",
        ),
    ] = None
    max_deletes: MaxDeletes = None

    def journals(self) -> tuple[Path, list[Path]]:
        """Return the journal, and those of others."""
        return self.journal, self.other_journals
