"""Verification of a log directory: every batch is checked, then the log is replayed."""

from pathlib import Path

from aclog.cli.image_report import CidrWatch, summary
from aclog.cli.rule_warnings import warn_of_each
from aclog.cli.verdict import WORDS, Findings, Verdict
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog import verify
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.filelog.verify import FindingKind
from aclog.metalog.printable import printable
from aclog.snapshots.image import Image
from aclog.sources.paths import LogSource
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.progress import BYTES, progress, tracked


def verify_log(directory: Path) -> Verdict:
    """Print every finding and a summary; return the verdict.

    Raises:
        LogError: the directory is not a log, or cannot be read.

    """
    found = Findings()
    with progress(f"checking {directory.name}", BYTES) as advance:
        for finding in verify(directory, advance):
            if finding.kind is FindingKind.NOTE:
                note(str(finding))
                continue
            found.damaged |= finding.kind is FindingKind.DAMAGE
            found.newer |= finding.kind is FindingKind.NEWER
            say(printable(str(finding)))
    image = _replay(directory, found)
    segments, checkpoints = len(list_segments(directory)), len(list_checkpoints(directory))
    what = f"{directory}: {segments} segment(s), {checkpoints} checkpoint(s)"
    failing = 0
    if image is not None:
        say(f"{what}, end offset {image.end_offset}, epoch {image.epoch}: {summary(image)}")
        watch = CidrWatch()
        rules = tracked(image.acls, "looking for odd rules", "rules", len(image.acls))
        failing = warn_of_each(watch.watch(rules), str(directory))
        watch.report()
    throws = f"not damaged, but Kafka 4.3.1 throws on {failing} of its ACLs: see the warnings"
    say(throws if failing and found.verdict is Verdict.SOUND else WORDS[found.verdict])
    return found.verdict


def _replay(directory: Path, found: Findings) -> Image | None:
    """Return the newest state; if the log cannot be replayed, print the reason and return None."""
    try:
        with progress(f"replaying {directory.name}", BYTES) as advance:
            source = LogSource(directory, note, advance)
            try:
                image = source.image()
            finally:
                source.close()
    except MetadataError as error:
        found.add(error)
        say(printable(f"cannot be replayed: {error}"))
        return None
    found.newer |= source.left_out
    return image
