"""The command lines that say what pages say."""

from attrs import evolve, frozen

from aclog.authorizer.acl import WILDCARD, PatternType, ResourceType
from aclog.authorizer.shell_word import shell_word

_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}
_SUPER_USERS = "--super-users"


@frozen(kw_only=True)
class CommandLine:
    """How the console's source and settings are named on a command line."""

    source: tuple[str, ...]
    """Such as `--log`, `DIR`."""
    settings: tuple[str, ...] = ()
    """Those of the authorizer."""

    def without_super_users(self) -> "CommandLine":
        """Return the same for who may not know the super users; they are others, so that his answers are the same."""
        before = ("", *self.settings)
        told = (word for last, word in zip(before, self.settings, strict=False) if _SUPER_USERS not in (last, word))
        return evolve(self, settings=tuple(told))

    def of(self, command: str, *flags: str, as_of: str | None = None, settings: bool = True) -> str | None:
        """Return a command with the source, and what else it takes; None if no shell can say it.

        `settings`: whether the command decides, and so takes those of the authorizer.
        """
        moment = ("--as-of", as_of) if as_of else ()
        quoted = [shell_word(part) for part in (*self.source, *moment, *(self.settings if settings else ()), *flags)]
        if any(part is None for part in quoted):
            return None
        return " ".join(["aclog", command, *(part for part in quoted if part is not None)])


def resource_words(resource_type: int, name: str, pattern_type: int = PatternType.LITERAL) -> tuple[str, ...]:
    """Return the flags that name a resource in a question."""
    if resource_type == ResourceType.CLUSTER:
        return ("--cluster",)
    words = (_FLAGS[ResourceType(resource_type)], name)
    if pattern_type == PatternType.PREFIXED:
        return (*words, "--resource-pattern-type", "prefixed")
    # Without the type a star would be a prefix.
    return (*words, "--resource-pattern-type", "literal") if WILDCARD in name else words
