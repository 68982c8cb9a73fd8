"""A state source of ACLs in files: JSON lines, or what GitOps tools keep in a repository."""

from collections.abc import Callable

from attrs import define, field

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.metalog.errors import ConfigError, ReplayError
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.acl_lines import accept
from aclog.sources.notify import Notify
from aclog.sources.read_options import ReadOptions
from aclog.sources.rule_files import find_rules, ref_rules
from aclog.sources.text_lines import display_name


@define(eq=False)
class AclsSource:
    """ACLs in JSON lines, from a file or stdin, or in GitOps files."""

    path: str
    """Of a file or directory; with `is_ref` GITREF:PATH."""
    check: Callable[[StandardAcl], None] = accept
    """Raises ConfigError on an ACL that the command refuses; called before the first image."""
    options: ReadOptions = field(factory=ReadOptions)
    notify: Notify | None = None
    is_ref: bool = field(default=False, kw_only=True)
    """Whether they are read as of a git commit."""
    _image: Image | None = field(default=None, init=False)
    _origins: Origins = field(default=NO_ORIGINS, init=False)

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""

    change_place: ChangePlace = field(factory=ChangePlace, init=False)
    """A cluster whose address is not known."""

    @property
    def name(self) -> str:
        """The file or directory."""
        return display_name(self.path)

    @property
    def origins(self) -> Origins:
        """Where the rules of the image stand; nothing before there is one."""
        return self._origins

    def image(self) -> Image:
        """Return a state with these ACLs and nothing else.

        Raises:
            ConfigError: a line that is not an ACL, or a duplicate ACL or id.
            OSError: the file cannot be read.

        """
        if self._image is None:
            find = ref_rules if self.is_ref else find_rules
            found = find(self.path, self.options, self.check)
            if self.notify is not None:
                for text in found.notes:
                    self.notify(text)
            try:
                acls = AclsImage.from_acls(found.rules)
            except ReplayError as error:
                raise ConfigError(f"{self.name}: {error.what}") from error
            self._image, self._origins = Image(acls=acls), found.origins
        return self._image

    def freshness(self) -> None:
        """Return None: a file is read as it is."""

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    def image_at(self, moment: Moment) -> Image:
        """Raise ConfigError: a file of ACLs has no history."""
        raise ConfigError(f"{self.name}: as of {moment_text(moment)}: a file of ACLs has one state only")
