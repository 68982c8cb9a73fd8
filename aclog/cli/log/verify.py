"""Verification of a log directory: every batch is checked, then the log is replayed."""

from pathlib import Path

from aclog.cli.image_report import CidrWatch, summary
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog import verify
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.snapshots.image import Image
from aclog.sources.paths import LogSource
from aclog.terminal.notices import note, one_line
from aclog.terminal.progress import progress


def verify_log(directory: Path) -> bool:
    """Print every finding and a summary; return whether nothing is wrong.

    Raises:
        LogError: the directory is not a log, or cannot be read.

    """
    sound = True
    with progress(f"checking {directory.name}") as advance:
        for finding in verify(directory, advance):
            sound = False
            print(one_line(str(finding)))
    image = _replay(directory)
    segments, checkpoints = len(list_segments(directory)), len(list_checkpoints(directory))
    what = f"{directory}: {segments} segment(s), {checkpoints} checkpoint(s)"
    if image is not None:
        print(f"{what}, end offset {image.end_offset}, epoch {image.epoch}: {summary(image)}")
        watch = CidrWatch()
        watch.watch_all(image.acls)
        watch.report()
    print("all is well" if sound and image is not None else "damaged")
    return sound and image is not None


def _replay(directory: Path) -> Image | None:
    """Return the newest state; if the log cannot be replayed, print the reason and return None."""
    try:
        with progress(f"replaying {directory.name}") as advance:
            source = LogSource(directory, note, advance)
            try:
                return source.image()
            finally:
                source.close()
    except MetadataError as error:
        print(one_line(f"cannot be replayed: {error}"))
        return None
