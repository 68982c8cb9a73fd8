"""Verification of a log directory: every batch is checked, then the log is replayed."""

from pathlib import Path
from typing import Any

from aclog.cli.flags.output import Output
from aclog.cli.image_report import RangeWatch, counts, summary
from aclog.cli.rule_warnings import warn_of_each
from aclog.cli.verdict import WORDS, Findings, Verdict
from aclog.metalog.errors import CheckpointError, MetadataError
from aclog.metalog.filelog import verify
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.filelog.verify import Finding, FindingKind
from aclog.metalog.printable import printable
from aclog.snapshots.bootstrap_records import uncommitted_bootstrap
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image
from aclog.sources.paths import LogSource
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.output_format import OutputFormat
from aclog.terminal.progress import BYTES, progress, tracked

FINDING_COLUMNS = (
    Column(key="kind"),
    Column(key="file", cut=True),
    Column(key="position", spare=True),
    Column(key="offset"),
    Column(key="problem", flows=True),
)
"""Of a finding."""


def verify_log(directory: Path, output: Output) -> Verdict:
    """Print every finding and a summary; return the verdict.

    Raises:
        LogError: the directory is not a log, or cannot be read.

    """
    found = Findings()
    with progress(f"checking {directory.name}", BYTES) as advance:
        findings = list(verify(directory, advance))
    for finding in findings:
        found.damaged |= finding.kind is FindingKind.DAMAGE
        found.newer |= finding.kind is FindingKind.NEWER
        if finding.kind is FindingKind.NOTE:
            note(str(finding))
        elif not output.is_rows:
            say(printable(str(finding)))
    image, problem = _replay(directory, found)
    if image is not None and (uncommitted := _uncommitted(directory, image)):
        found.damaged = True
        findings.append(Finding(path=directory, what=uncommitted))
        if not output.is_rows:
            say(printable(str(findings[-1])))
    if problem is not None and not output.is_rows:
        say(printable(f"cannot be replayed: {problem}"))
    answer: dict[str, Any] = {
        "directory": str(directory),
        "segments": len(list_segments(directory)),
        "checkpoints": len(list_checkpoints(directory)),
    }
    failing = 0
    if image is not None:
        answer |= {"endOffset": image.end_offset, "epoch": image.epoch, **counts(image)}
        if not output.is_rows:
            what = "{directory}: {segments} segment(s), {checkpoints} checkpoint(s)".format_map(answer)
            say(f"{what}, end offset {image.end_offset}, epoch {image.epoch}: {summary(image)}")
        watch = RangeWatch()
        rules = tracked(image.acls, "looking for odd rules", "rules", len(image.acls))
        failing = warn_of_each(watch.watch(rules, deciding_kafka(image, None)), str(directory))
        watch.report()
    if output.form is OutputFormat.TABLE:
        say(WORDS[found.verdict])
    if output.is_rows:
        verdict = {"verdict": found.verdict.name, "aclsKafkaThrowsOn": failing, "replayProblem": problem}
        rows = list(map(_finding_object, findings))
        output.print_answer({**verdict, **answer, "findings": rows}, FINDING_COLUMNS, rows)
        return found.verdict
    throws = f"not damaged, but Kafka 4.3.1 throws on {failing} of its ACLs: see the warnings"
    say(throws if failing and found.verdict is Verdict.SOUND else WORDS[found.verdict])
    return found.verdict


def _uncommitted(directory: Path, image: Image) -> str | None:
    try:
        return uncommitted_bootstrap(directory, image)
    except CheckpointError:  # a finding of its own
        return None


def _finding_object(finding: Finding) -> Row:
    return {
        "kind": finding.kind.name,
        "file": str(finding.path),
        "position": finding.position,
        "offset": finding.offset,
        "problem": finding.what,
    }


def _replay(directory: Path, found: Findings) -> tuple[Image | None, str | None]:
    """Return the newest state; if the log cannot be replayed, None and the reason."""
    try:
        with progress(f"replaying {directory.name}", BYTES) as advance:
            source = LogSource(directory, note, advance)
            try:
                image = source.image()
            finally:
                source.close()
    except MetadataError as error:
        found.add(error)
        return None, str(error)
    found.newer |= source.left_out
    return image, None
