"""What tests of rules compare with: the policy of a named source, and a file of accesses; read when it is asked for."""

from collections.abc import Mapping

from attrs import define, field

from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Request
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.snapshots.image import Image
from aclog.sources.accesses import read_accesses
from aclog.sources.named_source import NamedSource
from aclog.terminal.notices import note


@define(eq=False, kw_only=True)
class SourcePolicy:
    """The policy of a named source (aclog.analysis.rule_tests.other_policy.OtherPolicy), as of its first use."""

    source: NamedSource
    _image: Image | None = field(default=None, init=False)
    _last: Policy | None = field(default=None, init=False)
    _premises: Premises = field(default=ALL_KNOWN, init=False)

    @property
    def premises(self) -> Premises:
        """What is unknown of the settings of a running cluster, once its policy was asked for."""
        return self._premises

    @property
    def name(self) -> str:
        """How people name the source."""
        return self.source.name

    def policy(self, settings: Settings) -> Policy:
        """Return the policy with these settings. Raises MetadataError: the source cannot be read."""
        if self._image is None:
            try:
                chosen = self.source.open(note)
                self._image, self._premises = chosen.image(), chosen.premises(frozenset())
                chosen.source.close()
            except OSError as error:
                raise ConfigError(f"{self.source.place}: {error.strerror or error}: {error.filename}") from error
            except MetadataError as error:
                raise ConfigError(f"{self.source.place}: {error}") from error
        if self._last is None or self._last.settings != settings:
            acls = self._image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
            self._last = Policy(acls, settings)
        return self._last


@define(eq=False, kw_only=True)
class AccessesFile:
    """Accesses of a file or a directory (aclog.analysis.rule_tests.other_policy.Accesses)."""

    path: str
    place: str
    """File and line that name it, for errors."""
    _counts: Mapping[Request, int] | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The path."""
        return self.path

    def counts(self) -> Mapping[Request, int]:
        """Return distinct accesses with their numbers.

        Raises:
            ConfigError: it cannot be read, it has no access, or something in it is none: a test must not pass by what
                was left out.

        """
        if self._counts is None:
            try:
                found = read_accesses(self.path)
            except OSError as error:
                raise ConfigError(f"{self.place}: {error.strerror or error}: {self.path}") from error
            if found.malformed:
                raise ConfigError(f"{self.place}: {self.path}: {found.malformed:,} lines or rows are not accesses")
            if not found.counts:
                raise ConfigError(f"{self.place}: {self.path}: no access in it")
            self._counts = found.counts
        return self._counts
