"""The settings of a repository of rules, as values: what aclog.toml says; None, or nothing, where it is silent."""

from pathlib import Path

from attrs import field, frozen

from aclog.analysis.lint_report.suppression import Suppression
from aclog.metalog.errors import ConfigError
from aclog.sources.repository.toml_document import TomlDocument

FAIL_ON = ("error", "warning", "never")
"""From which severity on a finding makes a command fail."""
SEMANTICS = ("kafka", "documented")


@frozen(kw_only=True)
class SourceSettings:
    """Where the rules are, and what is known of the cluster besides; paths are as the working directory needs them."""

    acls: str | None = None
    format: str | None = None
    modules: tuple[str, ...] = ()
    """SOURCE=DIR, as for `--module`."""
    topics: str | None = None
    groups: str | None = None
    accesses: str | None = None


@frozen(kw_only=True)
class AuthorizerSettings:
    """What decides besides the rules."""

    super_users: str | None = None
    """As in the broker's super.users: separated by semicolons."""
    allow_everyone: bool | None = None
    semantics: str | None = None
    cidr: bool | None = None


@frozen(kw_only=True)
class LintSettings:
    """How to lint."""

    broker_version: str | None = None
    broker_principals: tuple[str, ...] | None = None
    separators: str | None = None
    principal_types: tuple[str, ...] | None = None
    select: tuple[str, ...] | None = None
    fail_on: str | None = None
    ignore: tuple[Suppression, ...] = ()


@frozen(kw_only=True)
class TestSettings:
    """Which tests to run."""

    __test__ = False
    """It is none for pytest."""

    files: tuple[str, ...] = ()
    min_coverage: float | None = None
    """In percent."""


@frozen(kw_only=True)
class ReviewSettings:
    """What makes a review fail; the words are those of `aclog review --fail-on`."""

    fail_on: tuple[str, ...] | None = None
    untouched: tuple[str, ...] | None = None
    """Resources on which nothing may change, as tests of rules write them: `topic:pii.*`."""


@frozen(kw_only=True)
class RepositorySettings:
    """All settings; those of no file are empty."""

    file: Path | None = None
    source: SourceSettings = field(factory=SourceSettings)
    authorizer: AuthorizerSettings = field(factory=AuthorizerSettings)
    lint: LintSettings = field(factory=LintSettings)
    test: TestSettings = field(factory=TestSettings)
    review: ReviewSettings = field(factory=ReviewSettings)
    document: TomlDocument | None = field(default=None, repr=False)

    def error(self, *keys: str, what: str) -> ConfigError:
        """Return an error about a setting, for what only a command can check: file, line, key, and what is wrong."""
        if self.document is None:
            return ConfigError(f"{'.'.join(keys)}: {what}")
        return self.document.error(keys, what)
