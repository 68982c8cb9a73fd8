"""Reads image files: the state of a checkpoint without replaying its ACLs, whose base is mapped and shared.

An image file is a cache. It is used only if it was made from exactly this checkpoint, by its digest, and no byte of it
has changed since; otherwise the checkpoint counts, as if there were none.
"""

import os
import stat
import struct
from pathlib import Path

from attrs import define, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.flat_base import base_of
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.file_names import image_path, parse_checkpoint_name
from aclog.metalog.filelog.filesystem import read_at
from aclog.snapshots.checkpoint_reader import decode_checkpoint
from aclog.snapshots.content_digest import digest_of_file
from aclog.snapshots.image import Image
from aclog.snapshots.image_header import HEADER_BYTES, ImageHeader, decode_header
from aclog.snapshots.mapped_file import MappedFile

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
# A link could lead to anybody's file, and opening a FIFO would wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_image_file(checkpoint: Path) -> Image | None:
    """Return the state of a checkpoint from the image file beside it; None if there is none.

    Raises:
        DecodeError: there is one, but it is not to be believed, with its path.

    """
    named = parse_checkpoint_name(checkpoint.name)
    if named is None:
        return None
    path = image_path(checkpoint)
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DecodeError(f"cannot open: {error.strerror or error}", path=str(path)) from error
    try:
        return _ImageFile(fd=fd, checkpoint=checkpoint, name=named).read()
    except OSError as error:
        raise DecodeError(f"cannot read: {error.strerror or error}", path=str(path)) from error
    except DecodeError as error:
        raise error.at(path=str(path)) from error
    finally:
        os.close(fd)


@frozen(kw_only=True)
class _Place:
    """Who may write a file, and its size."""

    owner: int
    size: int

    @classmethod
    def of(cls, fd: int, what: str) -> "_Place":
        """Return those of an open file. Raises DecodeError if it is no regular file."""
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise DecodeError(f"{what} is not a regular file")
        return cls(owner=found.st_uid, size=found.st_size)


@define(kw_only=True, eq=False)
class _ImageFile:
    """An open image file, while it is checked and read."""

    fd: int
    checkpoint: Path
    name: tuple[int, int]
    """End offset and epoch of the checkpoint's name."""

    def read(self) -> Image:
        """Check everything, then map the base. Raises DecodeError and OSError."""
        place = _Place.of(self.fd, "it")
        if os.fstat(self.fd).st_mode & _OTHERS_MAY_WRITE:
            raise DecodeError("others than its owner may write to it: expected mode 0600")
        header = decode_header(read_at(self.fd, 0, HEADER_BYTES))
        if header.file_size != place.size:
            raise DecodeError(f"{place.size} bytes: expected {header.file_size}, as its header says")
        self._check_checkpoint(header, place.owner)
        mapped = MappedFile(self.fd, image_path(self.checkpoint), header)
        rest = read_at(self.fd, HEADER_BYTES, header.rest_size)
        end_offset, epoch = self.name
        # Strict: about a newer Kafka's records, the checkpoint itself is to tell.
        image = decode_checkpoint(rest, end_offset=end_offset, epoch=epoch)
        return image.with_acls(_acls_of(mapped))

    def _check_checkpoint(self, header: ImageHeader, owner: int) -> None:
        """Check that the file was made from the checkpoint, and that whoever may write the one may write the other."""
        made_from = header.checkpoint
        if (made_from.end_offset, made_from.epoch) != self.name:
            raise DecodeError(
                f"made from the checkpoint of offset {made_from.end_offset}, epoch {made_from.epoch}, not from "
                f"{self.checkpoint.name}"
            )
        fd = os.open(self.checkpoint, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            place = _Place.of(fd, self.checkpoint.name)
            if place.owner != owner:
                raise DecodeError(f"its owner is user {owner}: expected {place.owner}, the checkpoint's")
            if place.size != made_from.size or digest_of_file(fd, place.size) != made_from.digest:
                raise DecodeError(f"made from another {self.checkpoint.name} than the one beside it")
        finally:
            os.close(fd)


def _acls_of(mapped: MappedFile) -> AclsImage:
    header = mapped.header
    try:
        base = base_of(memoryview(mapped)[header.base_start : header.checksums_start])
    except (ValueError, LookupError, struct.error) as error:  # its checksums match, and yet nobody here wrote it
        raise DecodeError(f"its base cannot be read: {error}") from error
    return AclsImage(index=AclIndex(base))
