"""The state of a shell session."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from attrs import define, field

from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.shell.path_names import path_text
from aclog.shell.tree import ImageOrigin, image_tree
from aclog.shell.tree_nodes import Directory
from aclog.snapshots.image import Image
from aclog.snapshots.mapped_file import check_mapping
from aclog.snapshots.moments import Moment
from aclog.snapshots.state_source import StateSource
from aclog.terminal.age import warn_if_stale


@define(kw_only=True)
class ShellState:
    """The state that commands of a session share. Not thread-safe.

    `moment` is the moment that the session has travelled to; None is the newest state, which each command reads afresh.
    `screen_width` is the width of the terminal in characters, None without a terminal.
    """

    source: StateSource
    show_secrets: bool = False
    screen_width: int | None = None
    working_directory: tuple[str, ...] = ()
    moment: Moment | None = None
    history: list[str] = field(factory=list)
    done: bool = False
    origins: Origins = NO_ORIGINS
    """Where the ACLs of the newest state stand."""
    premises: Callable[[AbstractSet[str]], Premises] = field(default=lambda _given: ALL_KNOWN)
    """Returns what is unknown of a running cluster's settings if those properties are given."""
    _image: Image | None = field(default=None, init=False)
    _tree: Directory | None = field(default=None, init=False)

    def image(self) -> Image:
        """Return the image at the session's moment; that of a log which is followed is read again each time.

        Raises:
            MetadataError, OSError: the source is damaged or deleted.

        """
        if self._image is not None and (self.moment is not None or self.source.log is None):
            check_mapping(self._image.acls)
            return self._image
        # A source returns the same image until the log has grown, and raises if it can no longer be followed.
        return self._take(self.image_at(self.moment))

    def tree(self) -> Directory:
        """Return the tree of that image. Raises as `image`."""
        image = self.image()
        if self._tree is None:
            self._tree = image_tree(image, self._origin(), show_secrets=self.show_secrets)
        return self._tree

    def warn_of_age(self) -> None:
        """Warn on stderr if the newest state, which the session is at, may be out of date."""
        if self.moment is None:
            warn_if_stale(self.source.freshness())

    def image_at(self, moment: Moment | None) -> Image:
        """Return the image at another moment, the newest for None. Raises as `image`."""
        return self.source.image() if moment is None else self.source.image_at(moment)

    def go_to(self, moment: Moment | None) -> None:
        """Travel to a moment; if there is no such state, the session does not move. Raises as `image`."""
        self._take(self.image_at(moment))
        self.moment = moment

    @property
    def path(self) -> str:
        """The working directory, encoded."""
        return path_text(self.working_directory)

    def _take(self, image: Image) -> Image:
        # The tree caches listings of its image: it is dropped with it.
        if image is not self._image:
            self._image, self._tree = image, None
        return image

    def _origin(self) -> ImageOrigin:
        log = self.source.log
        high_watermark = log.high_watermark if log else None
        return ImageOrigin(source=self.source.name, high_watermark=high_watermark, acls=self.origins)
