"""A checkpoint file as a state source: apart from logs, whose modules a question to a checkpoint does not import."""

from itertools import islice
from pathlib import Path

from attrs import field

from aclog.authorizer.acl import ChangePlace
from aclog.authorizer.standard import Premise
from aclog.metalog.errors import NO_SUCH_PATH, LogError
from aclog.metalog.values import define
from aclog.snapshots.checkpoints import state_in
from aclog.snapshots.image import Image, NewerKafka
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.moments import Moment
from aclog.sources.notes import Notify, newer_gaps

_LOOKED_AT = 1000
"""Paths that are searched for files of rules, where there is no log."""
_RULE_FILES = frozenset((".yaml", ".yml", ".tf", ".jsonl", ".csv"))


@define(eq=False, repr=False)
class CheckpointSource:
    """One checkpoint file."""

    path: Path
    notify: Notify
    _image: Image | None = field(default=None, init=False)
    _gaps: tuple[Premise, ...] = field(default=(), init=False)

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""

    change_place: ChangePlace = field(factory=ChangePlace, init=False)
    """A cluster with an unknown address."""

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    def image(self) -> Image:
        """Return the state in the checkpoint. Raises CheckpointError; LogError: its image file was overwritten."""
        if self._image is None:
            self._image = self._recover(None)
        check_mapping(self._image.acls)
        return self._image

    def gaps(self) -> tuple[Premise, ...]:
        """Return the gaps of the state. Raises as `image`."""
        self.image()
        return self._gaps

    def freshness(self) -> None:
        """Return None: a file is read as it is."""

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    def image_at(self, moment: Moment) -> Image:
        """Return the state in the checkpoint if it is that of the moment. Raises LogError otherwise."""
        return self._recover(moment)

    def _recover(self, moment: Moment | None) -> Image:
        if not self.path.exists():
            raise LogError(f"{self.path}: {NO_SUCH_PATH}")
        if not self.path.is_file():
            raise LogError(f"{self.path}: not a file: expected a checkpoint{rules_hint(self.path)}")
        if hint := rules_hint(self.path):
            raise LogError(f"{self.path}: not a checkpoint file name{hint}")
        newer = NewerKafka(strict=False)
        image = state_in(self.path, moment, newer=newer, notify=self.notify)
        for note in newer.warnings():
            self.notify(note)
        self._gaps = newer_gaps(newer)
        return image


def rules_hint(path: Path) -> str:
    """Return the flag for files of rules, if a file, or one of a directory, may be one by its name; else empty."""
    some = islice(path.rglob("*"), _LOOKED_AT) if path.is_dir() else [path]
    return f": did you mean --acls {path}?" if any(map(_may_hold_rules, some)) else ""


def _may_hold_rules(path: Path) -> bool:
    return path.suffix in _RULE_FILES and not any(part.startswith(".") for part in path.parts)
