"""What `aclog spark ingest` says of the lines that it has read: a table, or JSON."""

from pathlib import Path

from aclog.cli.transfer.output import open_output
from aclog.pipeline.accesses import Appended, Counts
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import warn
from aclog.terminal.output import emit, say
from aclog.terminal.table import aligned
from aclog.terminal.timestamps import utc_text

STDOUT = "-"


def say_counts(counts: Counts, rejects: Path) -> None:
    """Print the number of lines of each kind, and warn of rejects, which are in this directory."""
    for line in aligned(("lines", "what"), _rows(counts)):
        say(line)
    if counts.rejected:
        warn(f"{counts.rejected:,} of {counts.total:,} lines are not accesses: see {rejects}")


def write_summary(place: str | None, out: Path, counts: Counts, appended: Appended | None, *, committed: bool) -> None:
    """Write the summary to a file, which is replaced, or to stdout; nothing if there is no place.

    Raises:
        ConfigError, OSError: as open_output.

    """
    if place is None:
        return
    text = json_text(_summary(out, counts, appended, committed=committed))
    if place == STDOUT:
        emit(text, flush=True)
    else:
        with open_output(Path(place), binary=False) as file:
            file.write(f"{text}\n".encode())


def _summary(out: Path, counts: Counts, appended: Appended | None, *, committed: bool) -> dict[str, object]:
    summary: dict[str, object] = {
        "out": str(out),
        "committed": committed,
        "lines": counts.total,
        "accesses": counts.accesses,
        "rejected": counts.rejected,
        "blank": counts.blanks,
        "rejectRate": round(counts.reject_rate, 6),
        "rejects": dict(counts.rejects),
    }
    if appended is not None:
        summary["files"] = {
            "seen": appended.files,
            "new": appended.whole,
            "grown": appended.grown,
            "known": appended.known,
            "unfinished": list(appended.waiting),
        }
        summary["days"] = list(appended.days)
        summary["late"] = appended.late
        summary["watermark"] = _time(appended.watermark)
        summary["sources"] = {source: _time(latest) for source, latest in sorted(appended.sources.items())}
    return summary


def _time(micros: int | None) -> str | None:
    return None if micros is None else utc_text(micros // 1000)


def watermark_text(appended: Appended) -> str:
    """Return up to when the table is complete, for people."""
    time = _time(appended.watermark)
    if time is not None:
        return f"complete up to {time}"
    unknown = [source for source, latest in sorted(appended.sources.items()) if latest is None]
    return f"no access with a time yet{f' from {unknown[0]}' if unknown else ''}"


def _rows(counts: Counts) -> list[tuple[str, str]]:
    rejects = [(f"{count:,}", f"rejected: {reason}") for reason, count in counts.rejects.items()]
    blanks = [(f"{counts.blanks:,}", "blank")] if counts.blanks else []
    return [(f"{counts.accesses:,}", "accesses"), *rejects, *blanks, (f"{counts.total:,}", "read")]
