"""Image files, and what careless copies do to them."""

from pathlib import Path

from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog.files import image_path
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint, write_image_file
from tests.support.builders.state_records import acl

RULES = 3


def write_pair(directory: Path) -> Path:
    """Write a checkpoint of RULES ACLs that allow, and its image file; return the path of the checkpoint."""
    values = [encode_record(acl(number)) for number in range(RULES)]
    image = Applier().apply(build_batch(values, base_offset=0, leader_epoch=1, timestamp=5))
    path = write_checkpoint(image, directory)
    write_image_file(path)
    return path


def overwrite(checkpoint: Path) -> None:
    """Write a good image file of other rules, which deny, over that of `write_pair`, in place: as `cp` of a backup."""
    values = [encode_record(acl(number, permission=2)) for number in range(RULES)]
    other = Applier().apply(build_batch(values, base_offset=0, leader_epoch=1, timestamp=5))
    (checkpoint.parent / "backup").mkdir()
    backup = write_image_file(write_checkpoint(other, checkpoint.parent / "backup"))
    path = image_path(checkpoint)
    assert backup.stat().st_size == path.stat().st_size
    with path.open("r+b") as file:
        file.write(backup.read_bytes())
