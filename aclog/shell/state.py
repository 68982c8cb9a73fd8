"""The state of a shell session."""

from attrs import define, field

from aclog.shell.path_names import path_text
from aclog.shell.tree import ImageOrigin, image_tree
from aclog.shell.tree_nodes import Directory
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment
from aclog.snapshots.state_source import StateSource


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
    _image: Image | None = field(default=None, init=False)
    _tree: Directory | None = field(default=None, init=False)
    _mark: int | None = field(default=None, init=False)

    def image(self) -> Image:
        """Return the image at the session's moment; the newest image is read again when the log has grown.

        Raises:
            MetadataError, OSError: the source is damaged or deleted.

        """
        log = self.source.log
        # The high-water mark is read before the image: if the log grows in between, the image is read again next time.
        mark = log.high_watermark() if log and self.moment is None else None
        if self._image is not None and mark == self._mark:
            return self._image
        return self._take(self.image_at(self.moment), mark)

    def tree(self) -> Directory:
        """Return the tree of that image. Raises as `image`."""
        image = self.image()
        if self._tree is None:
            self._tree = image_tree(image, self._origin(), show_secrets=self.show_secrets)
        return self._tree

    def image_at(self, moment: Moment | None) -> Image:
        """Return the image at another moment, the newest for None. Raises as `image`."""
        return self.source.image() if moment is None else self.source.image_at(moment)

    def go_to(self, moment: Moment | None) -> None:
        """Travel to a moment; if there is no such state, the session does not move. Raises as `image`."""
        self._take(self.image_at(moment), None)
        self.moment = moment

    @property
    def path(self) -> str:
        """The working directory, encoded."""
        return path_text(self.working_directory)

    def _take(self, image: Image, mark: int | None) -> Image:
        self._mark = mark
        # The tree caches listings of its image: it is dropped with it.
        if image is not self._image:
            self._image, self._tree = image, None
        return image

    def _origin(self) -> ImageOrigin:
        log = self.source.log
        return ImageOrigin(source=self.source.name, high_watermark=log.high_watermark if log else None)
