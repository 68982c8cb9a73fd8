"""The settings that decide besides ACLs.

Super users and allow.everyone.if.no.acl.found; also names of principals and resources in questions.
"""

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Self

from attrs import evolve

from aclog.authorizer.acl import ResourcePattern, code_name
from aclog.authorizer.acl import parse_name as parse_enum_name
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import InvalidRequestError
from aclog.metalog.errors import ConfigError
from aclog.metalog.native import regex
from aclog.metalog.values import frozen

# The properties of the authorizer: `super.users`, `allow.everyone.if.no.acl.found` and `aclog.cidr.enabled`.


SUPER_USERS_CONFIG = "super.users"
ALLOW_EVERYONE_CONFIG = "allow.everyone.if.no.acl.found"
CIDR_CONFIG = "aclog.cidr.enabled"
"""Whether the host of an ACL may be a CIDR range (KIP-1276); not a property of Kafka's."""

_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's String.trim strips: every character up to the space, control characters included."""


def parse_cidr_enabled(text: str | None, name: str = CIDR_CONFIG) -> bool:
    """Parse `aclog.cidr.enabled`; off if it is not set. `name` is the property or flag that an error names.

    Raises:
        ConfigError: it is neither `true` nor `false`: a typo must not turn a DENY off.

    """
    value = "false" if text is None else text.strip(_JAVA_BLANKS).lower()
    if value not in {"true", "false"}:
        raise ConfigError(f"{name}: {text!r}: expected true or false")
    return value == "true"


def parse_super_users(text: str | None) -> frozenset[str]:
    """Parse `super.users`, such as `User:admin;User:kafka`; parts are trimmed, empty ones dropped.

    They are compared with the principal of a request as whole texts, so `User:*` is not a wildcard here
    (StandardAuthorizer.getConfiguredSuperUsers).

    Raises:
        ConfigError: a part has no colon.

    """
    users = frozenset(part.strip(_JAVA_BLANKS) for part in (text or "").split(";")) - {""}
    for user in sorted(users):
        if ":" not in user:
            raise ConfigError(
                f"{SUPER_USERS_CONFIG}: expected a string in format principalType:principalName but got {user}"
            )
    return users


_SECOND_NAME = regex(r"(?<!\\)[,|]\s*\w+:|\sUser:")
"""What looks like the beginning of another principal within one; an attribute of a distinguished name has `=`."""


def super_user_mistakes(text: str | None) -> Iterator[str]:
    """Yield a warning for each super user that is probably a mistake; `text` is a valid `super.users`."""
    for user in sorted(parse_super_users(text)):
        kind, _, name = user.partition(":")
        if match := _SECOND_NAME.search(user):
            suggestion = f"{user[: match.start()]};{user[match.start() + 1 :].lstrip()}"
            yield f"{user!r} is a single name, as super users are separated by ';': did you mean {suggestion!r}?"
        elif name == "*":
            yield f"{user!r} matches no principal: super.users has no wildcards"
        elif kind == "User" and name != "ANONYMOUS" and name.upper() == "ANONYMOUS":
            yield f"{user!r} is not the anonymous principal: did you mean 'User:ANONYMOUS'?"


def parse_allow_everyone(text: str | None) -> bool:
    """Parse `allow.everyone.if.no.acl.found`: `true` in any case, trimmed, is on; anything else is off."""
    return text is not None and text.strip(_JAVA_BLANKS).lower() == "true"


# Principals as text: `Type:name` (org.apache.kafka.common.security.auth.KafkaPrincipal).


@frozen(kw_only=True)
class KafkaPrincipal:
    """A principal: a type (`User`, or any type of a principal builder) and a name; either may be empty."""

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text, split at its first colon: the name of `User:a:b` is `a:b`.

        Raises:
            InvalidRequestError: there is no colon; the message is that of Kafka's StandardAcl.

        """
        kind, colon, name = text.partition(":")
        if not colon:
            raise InvalidRequestError(no_colon(text))
        return cls(type=kind, name=name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


def no_colon(text: str) -> str:
    """Return Kafka's message about a principal without a colon."""
    return (
        f"Could not parse principal from `{text}` "
        "(no colon is present separating the principal type from the principal name)"
    )


# The notation of names in questions, tests of ACLs and answers: `orders`, or `pii-*` for all names with that prefix.
#
# - A text without a `*` is that name, backslashes and all.
# - A `*` at the end is a prefix: all names that begin with what precedes it; `*` alone is every name.
# - `\*` is a star in a name. A star that is neither at the end nor written so is an error.
# - Backslashes right before a `*` count in pairs: each pair is one backslash. An odd one escapes the star, so
#   `a\\*` is the prefix `a\`, and `a\\\*` is the name `a\*`. All other backslashes are themselves.
#
# Kafka's own commands, its requests and rules have names as they are, with a pattern type: LITERAL or PREFIXED.


_STAR = regex(r"(?<!\\)(\\*)\*")
"""A star with all backslashes right before it; a long run without a star is looked at once."""
_MAX_EXCERPT = 80


def parse_name(text: str) -> tuple[str, PatternType]:
    """Return the name or prefix that a text means. Raises ConfigError: a star neither at the end nor escaped."""
    parts, end = [], 0
    for star in _STAR.finditer(text):
        backslashes = star[1]
        parts.append(text[end : star.start()] + backslashes[: len(backslashes) // 2])
        end = star.end()
        if len(backslashes) % 2:
            parts.append(WILDCARD)
        elif end == len(text):
            return "".join(parts), PatternType.PREFIXED
        else:
            raise ConfigError(
                rf"{text[:_MAX_EXCERPT]} has a * before its end: expected PREFIX*, or \* for a star in the name"
            )
    return "".join((*parts, text[end:])), PatternType.LITERAL


def name_text(name: str, pattern_type: int = PatternType.LITERAL) -> str:
    """Return the text that `parse_name` reads as this name, or as this prefix if the type is PREFIXED."""
    text = _STAR.sub(lambda star: rf"{star[1]}{star[1]}\*", name)
    if pattern_type == PatternType.LITERAL:
        return text
    last_backslashes = text[len(text.rstrip("\\")) :]
    return f"{text}{last_backslashes}{WILDCARD}"


def pattern_text(pattern: ResourcePattern) -> str:
    """Return the name of a pattern as `name_text`."""
    return name_text(pattern.name, pattern.pattern_type)


def parse_pattern(kind: ResourceType, text: str) -> ResourcePattern:
    """Return the pattern for a text and a type. Raises as `parse_name`."""
    name, pattern_type = parse_name(text)
    return ResourcePattern(resource_type=kind, name=name, pattern_type=pattern_type)


def asked_pattern(kind: ResourceType, text: str, pattern_type: int | None = None) -> ResourcePattern:
    """Return what a question names; with a pattern type the name is as it is, as in Kafka's commands.

    Raises:
        ConfigError: as `parse_name`, or a star in a topic's name.

    """
    if pattern_type is not None:
        return ResourcePattern(resource_type=kind, name=text, pattern_type=pattern_type)
    try:
        pattern = parse_pattern(kind, text)
    except ConfigError as error:
        raise ConfigError(f"{code_name(ResourceType, kind)}: {error}") from error
    check_topic_name(pattern)
    return pattern


def check_topic_name(pattern: ResourcePattern) -> None:
    """Raise ConfigError if a question names topics with a star: it is mistyped, since there can be none."""
    if pattern.resource_type == ResourceType.TOPIC and WILDCARD in pattern.name:
        raise ConfigError(
            f"TOPIC: {pattern_text(pattern)[:_MAX_EXCERPT]}: a topic name cannot contain *: expected a name, or "
            "PREFIX* for a prefix; with a pattern type, LITERAL or PREFIXED, a name is taken literally"
        )


def rule_pattern(kind: ResourceType, text: str) -> ResourcePattern:
    """Return the pattern of a rule on what a question names so: LITERAL `*` for every name.

    Raises:
        ConfigError: as `asked_pattern`; or it is the name `*`, which no rule can be on without being on all names.

    """
    pattern = asked_pattern(kind, text)
    if pattern.name == WILDCARD and not is_set(pattern):
        raise ConfigError(f"{code_name(ResourceType, kind)}: {text}: a rule on the name * is on every name: expected *")
    if is_set(pattern) and not pattern.name:
        return ResourcePattern(resource_type=kind, name=WILDCARD)
    return pattern


def is_set(pattern: ResourcePattern) -> bool:
    """Return whether a pattern of a question means all names that begin so."""
    return pattern.pattern_type == PatternType.PREFIXED


# Resources of questions, by short names (docs/library.md).


_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)


def topic(name: str, *, pattern: str | PatternType | None = None, prefixed: bool = False) -> ResourcePattern:
    """Return a topic, or with `pii-*` all topics that begin with `pii-` (aclog.authorizer.settings).

    With a pattern type, LITERAL or PREFIXED, the name is as it is, as in Kafka; `prefixed=True` means PREFIXED.

    Raises:
        ConfigError: here and below: the name is no text, or has a star that is neither at the end nor escaped; or the
            pattern type is another one. Of a topic also: a star in its name.

    """
    return _resource_pattern(ResourceType.TOPIC, name, pattern, prefixed)


def group(name: str, *, pattern: str | PatternType | None = None, prefixed: bool = False) -> ResourcePattern:
    """Return a consumer group, or all that begin so."""
    return _resource_pattern(ResourceType.GROUP, name, pattern, prefixed)


def cluster() -> ResourcePattern:
    """Return the cluster resource."""
    return ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


def transactional_id(name: str, *, pattern: str | PatternType | None = None, prefixed: bool = False) -> ResourcePattern:
    """Return a transactional id, or all that begin so."""
    return _resource_pattern(ResourceType.TRANSACTIONAL_ID, name, pattern, prefixed)


def delegation_token(
    token_id: str, *, pattern: str | PatternType | None = None, prefixed: bool = False
) -> ResourcePattern:
    """Return a delegation token, named by its id, or all whose ids begin so."""
    return _resource_pattern(ResourceType.DELEGATION_TOKEN, token_id, pattern, prefixed)


def user(principal: str, *, pattern: str | PatternType | None = None, prefixed: bool = False) -> ResourcePattern:
    """Return a user as a resource (`User:alice`), or all that begin so, for CREATE_TOKENS and DESCRIBE_TOKENS."""
    return _resource_pattern(ResourceType.USER, principal, pattern, prefixed)


def _resource_pattern(
    resource_type: ResourceType, name: str, pattern: str | PatternType | None, prefixed: object
) -> ResourcePattern:
    if not isinstance(name, str):
        raise ConfigError(f"the name of a {resource_type} is of type {type(name).__name__}: expected text")
    if isinstance(pattern, str):
        pattern = parse_enum_name(_PATTERNS, pattern)
    if pattern is not None and pattern not in _PATTERNS:
        raise ConfigError(f"pattern {pattern!r}: expected LITERAL or PREFIXED")
    if not isinstance(prefixed, bool):
        raise ConfigError(f"prefixed is of type {type(prefixed).__name__}: expected True or False")
    if prefixed:
        if pattern not in (None, PatternType.PREFIXED):
            raise ConfigError(f"pattern {pattern!r} and prefixed=True: expected one of them")
        pattern = PatternType.PREFIXED
    return asked_pattern(resource_type, name, pattern)


# The generation of Kafka's authorizer: the semantics by which a broker or controller decides.
#
# The software that decides selects it, not metadata.version: a cluster finalized at 4.3 whose broker runs 4.4.0
# decides by the rules of 4.4 on that broker. docs/semantics.md has a column for each.


RANGES_LEVEL = 32
"""The level of metadata.version (4.4-IV1) that only software of the generation 4.4 supports."""
CIDR_FEATURE = "aclog.cidr"
"""A node that decides by CIDR ranges (aclog.cidr.enabled) supports its level 1; it is never finalized."""
_BY_CONTROLLERS: Mapping[int, AbstractSet[int]] = {
    ResourceType.TOPIC: frozenset(
        {
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.ALTER_CONFIGS,
            AclOperation.DESCRIBE_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset({AclOperation.ALTER_CONFIGS}),
    ResourceType.CLUSTER: frozenset(AclOperation) - {AclOperation.IDEMPOTENT_WRITE},
    ResourceType.USER: frozenset({AclOperation.CREATE_TOKENS}),
}
"""What controllers decide (kafka.server.ControllerApis), by the type of the resource. A broker forwards such a request
undecided, and its controller decides it for the client's principal and address. DESCRIBE of a topic is not among it: of
a deletion that is denied anyway, it only selects the error."""
_OLDEST, _NEWEST = (0, 9), (4, 4)
_VERSION = regex(r"(?P<major>[0-9]{1,2})\.(?P<minor>[0-9]{1,3})(\.[0-9]{1,3}){0,2}(-[0-9A-Za-z.]+)?")
_MAX_VERSION_EXCERPT = 40


class Generation(Enum):
    """A generation, named by the first Kafka that decides by it; its value is that version."""

    V4_3 = "4.3"
    """Hosts of ACLs are compared as texts: one with a slash matches no client. All versions up to 4.3."""
    V4_4 = "4.4"
    """A host with a slash is a range of addresses (KIP-1276)."""

    @property
    def has_ranges(self) -> bool:
        """Whether the host of an ACL may be a range of addresses."""
        return self is Generation.V4_4

    def __str__(self) -> str:
        return f"Kafka {self.value}"


@frozen(kw_only=True)
class GenerationPair:
    """The generations by which some nodes decide on two states."""

    old: Generation
    new: Generation
    only_controllers: bool = False
    """Whether no broker is among the nodes."""

    @property
    def value(self) -> str:
        """The version of the generation that decides on the second state."""
        return self.new.value

    @property
    def _direction(self) -> str:
        return "upgrade" if self.new.has_ranges else "downgrade"

    def cause(self) -> str:
        """Return such as `by the upgrade from Kafka 4.3 to Kafka 4.4`."""
        return f"by the {self._direction} from {self.old} to {self.new}"

    def to_dict(self) -> dict[str, str]:
        """Return the JSON object of `aclog diff`."""
        return {"old": self.old.value, "new": self.new.value}

    def __str__(self) -> str:
        nodes = "controllers" if self.only_controllers else "nodes"
        return f"{nodes} {self._direction}d from {self.old} to {self.new}"


def generation_of_version(text: str) -> Generation:
    """Return the generation of a release of Kafka, such as 4.3.1 or 4.4.

    Raises:
        ConfigError: the text is no version, or one of a Kafka newer than those whose decisions are known.

    """
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{text[:_MAX_VERSION_EXCERPT]!r} is not a version of Kafka: expected one such as 4.3.1 or 4.4.0"
        )
    version = int(match["major"]), int(match["minor"])
    if not _OLDEST <= version <= _NEWEST:
        newest = ".".join(map(str, _NEWEST))
        raise ConfigError(f"Kafka {text[:_MAX_VERSION_EXCERPT]} is not supported: expected a version up to {newest}")
    return Generation.V4_4 if version >= (4, 4) else Generation.V4_3


def named_generation(
    version: str | None, ranges: bool | None, *, version_name: str, ranges_text: str
) -> Generation | None:
    """Return the generation that two settings name: a release of Kafka, or whether hosts may be ranges.

    None if neither is given. `version_name` is what the first one is called, `ranges_text` how the second one is given.

    Raises:
        ConfigError: no version of a known Kafka, or the two differ; the text begins with `version_name`.

    """
    if version is None:
        return None if ranges is None else Generation.V4_4 if ranges else Generation.V4_3
    try:
        named = generation_of_version(version)
    except ConfigError as error:
        raise ConfigError(f"{version_name}: {error}") from None
    if ranges is not None and ranges is not named.has_ranges:
        raise ConfigError(f"{version_name} {version} and {ranges_text} differ: expected one of them")
    return named


def generation_of_level(newest_supported: int) -> Generation:
    """Return the generation of a server by the newest level of metadata.version that it supports."""
    return Generation.V4_4 if newest_supported >= RANGES_LEVEL else Generation.V4_3


def deciding_level(newest: int, *, has_ranges: bool) -> int:
    """Return the metadata.version level that represents how a node decides.

    `newest`: the newest level that it supports. `has_ranges`: whether it is a node of aclog that treats hosts as ranges
    at any level (aclog.cidr.enabled).
    """
    return max(newest, RANGES_LEVEL) if has_ranges else newest


def controllers_decide(resource_type: int, operation: int) -> bool:
    """Return whether a controller may decide a request, by the codes of its type and operation.

    The only statement of whose generation of Kafka decides which request. A broker decides what it handles itself
    (kafka.server.KafkaApis). What changes metadata it forwards in an Envelope without a decision (ForwardingManager),
    and the active controller decides it for the client's principal and address (kafka.server.ControllerApis), as it
    does for clients of --bootstrap-controller. Brokers decide all other requests, and also some of these (ALTER on the
    cluster for AlterReplicaLogDirs). So for a request of which this is true the generations of brokers and controllers
    count, for any other one those of brokers alone.
    """
    return operation in _BY_CONTROLLERS.get(resource_type, frozenset())


# The settings that decide besides ACLs: two properties of the broker, and aclog's own semantics.


@frozen(kw_only=True)
class Settings:
    """The settings of an authorizer."""

    super_users: frozenset[str] = frozenset()
    """Principals such as `User:admin` (super.users)."""
    allow_everyone: bool = False
    """allow.everyone.if.no.acl.found."""
    documented: bool = False
    """Whether LITERAL `*` also covers longer names that begin with `*`; in Kafka 4.3.1 it does not."""
    cidr: bool = False
    """Whether the host of an ACL may be a CIDR range (KIP-1276): the generation of Kafka that decides."""
    is_kafka_stated: bool = True
    """Whether `cidr` was given by a person or a configuration; if not, a state may determine it
    (aclog.snapshots.deciding_kafka.settled)."""

    @property
    def generation(self) -> Generation | None:
        """The generation of Kafka that decides; None if it is not stated."""
        if not self.is_kafka_stated:
            return None
        return Generation.V4_4 if self.cidr else Generation.V4_3

    def by_generation(self, generations: Collection[Generation]) -> "dict[Generation | None, Settings]":
        """Return the same for each of these generations of Kafka; under None, if it is one, or none is named."""
        if len(generations) <= 1:
            return {None: self.of_generation(*generations) if generations else self}
        return {each: self.of_generation(each) for each in generations}

    def of_generation(self, generation: Generation) -> Self:
        """Return the same for a Kafka of this generation."""
        return evolve(self, cidr=generation.has_ranges, is_kafka_stated=True)

    @classmethod
    def of_texts(
        cls, super_users: str | None, allow_everyone: str | None, *, documented: bool = False, cidr: bool = False
    ) -> Self:
        """Parse the values of `super.users` and `allow.everyone.if.no.acl.found`.

        Raises:
            ConfigError: `super.users` has an entry without a colon.

        """
        return cls(
            super_users=parse_super_users(super_users),
            allow_everyone=parse_allow_everyone(allow_everyone),
            documented=documented,
            cidr=cidr,
        )
