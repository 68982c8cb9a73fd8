"""The options of commands that decide: the broker's settings."""

from attrs import evolve

from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, parse_cidr_enabled
from aclog.authorizer.generation import Generation, named_generation
from aclog.authorizer.settings import Settings
from aclog.shell.arguments import Arguments, Option
from aclog.snapshots.deciding_kafka import settled
from aclog.snapshots.image import Image

_SUPER_USERS = Option(flag="--super-users", value="USERS", help="The broker's super.users, such as 'User:a;User:b'.")
_ALLOW_EVERYONE = Option(
    flag="--allow-everyone", value="BOOLEAN", help="The broker's allow.everyone.if.no.acl.found: true or false."
)
_VERSION = Option(flag="--kafka-version", value="V", help="The Kafka that decides, such as 4.3.1.")
_CIDR = Option(flag="--cidr", value="BOOLEAN", help="The same: true for Kafka 4.4, false for one up to 4.3.")

SETTINGS = (_SUPER_USERS, _ALLOW_EVERYONE, _VERSION, _CIDR)


def given_settings(arguments: Arguments) -> frozenset[str]:
    """Return the properties of brokers whose values are given."""
    given = {SUPER_USERS_CONFIG: _SUPER_USERS, ALLOW_EVERYONE_CONFIG: _ALLOW_EVERYONE}
    return frozenset(name for name, option in given.items() if arguments.text(option.flag))


def settings_of(arguments: Arguments, image: Image) -> Settings:
    """Return the settings by which a state is decided.

    Raises:
        ConfigError: a super user without a colon, no version of a known Kafka, --cidr is neither true nor false or
            another than the version, or nothing states which Kafka decides, and it matters.

    """
    version, ranges = arguments.text(_VERSION.flag), arguments.text(_CIDR.flag)
    has_ranges = parse_cidr_enabled(ranges or None, _CIDR.flag)
    named = named_generation(
        version or None,
        has_ranges if ranges else None,
        version_name=_VERSION.flag,
        ranges_text=f"{_CIDR.flag} {ranges}",
    )
    settings = Settings.of_texts(
        arguments.text(_SUPER_USERS.flag), arguments.text(_ALLOW_EVERYONE.flag), cidr=named is Generation.V4_4
    )
    return settled(evolve(settings, is_kafka_stated=named is not None), image)
