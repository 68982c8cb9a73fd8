"""Random sets of rules with odd names, of what a format can hold."""

from collections.abc import Callable
from random import Random

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers import WRITERS
from tests.support.builders.acls import acl

_ODD = (
    "yes", "no", "on", "null", "~", "true", "1e3", "007", "0x1F", "1_000", "-", "?", "1:30",
    "2026-11-22", ".inf", "<<", "=",
    "*", "**", "a*", "*a", "&a", "!tag", "@x", "`x`", "%TAG", "#", "a #b", "a: b", "a:", "- a", "[a]",
    "{a}", "{a: b}",
    "${x}", "$${x}", "$$${x}", "%{x}", "%%{x}", "$", "%", "\\", "a\\nb", "\\u0041", '"', '""', "'",
    "''", "a,b", ",", ";",
    '"a","b"', " lead", "trail ", "a  b", "\ta", "é", "ß", "日本語", "😀", "a\u202eb", "\xa0", "\x7f",
    "\x85", "\u2028", "\ufeff",
    "a=b", "a, host=b", "(x)", "name=a, patternType=LITERAL)", "line\nbreak", "cr\rlf\r\n", "\x1b[31m",
    "e\u0301", "{{x}}", "{%x%}",
    "EOT", "<<EOT", "~>", "a|b", "|", ">", "orders.eu", "orders", "CN=web", "CN=a,OU=b", "a/b",
    "x" * 249,
)  # fmt: skip
_TYPES = tuple(each for each in ResourceType if each >= ResourceType.TOPIC)
_OPERATIONS = tuple(each for each in AclOperation if each >= AclOperation.ALL)
_HOSTS = ("*", "10.0.0.1", "10.0.0.0/8", "::1", "not-a-host", "a b")
_KUBERNETES = ("web", "a.b", "007", "1e3", "yes", "null", "0", "on", "x" * 60, "a-b.c-1")


def random_estate(form: AclsFormat, seed: int) -> list[StandardAcl]:
    """Return up to 40 rules without duplicates that a format can hold."""
    return random_rules(form, seed, WRITERS[form].unfit)


def random_rules(form: str, seed: int, unfit: Callable[[StandardAcl], str | None]) -> list[StandardAcl]:
    """Return up to 40 rules without duplicates; `unfit` returns why one is left out."""
    random = Random(f"{form}{seed}")
    tls = random.random() < 0.5
    count = random.randrange(1, 40)
    rules: dict[StandardAcl, None] = {}
    for _ in range(count * 20):
        rule = _rule(random, form, tls=tls)
        if len(rules) < count and unfit(rule) is None:
            rules[rule] = None
    return list(rules)


def _rule(random: Random, form: str, *, tls: bool) -> StandardAcl:
    kind = random.choice(_TYPES)
    name = "kafka-cluster" if kind == ResourceType.CLUSTER else _name(random)
    return acl(
        name,
        _user(random, tls=tls)
        if form == AclsFormat.STRIMZI
        else f"{random.choice(('User', 'User', 'Group'))}:{_name(random)}",
        random.choice(_HOSTS),
        random.choice(_OPERATIONS),
        resource_type=kind,
        pattern_type=random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        permission_type=random.choice((AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY)),
    )


def _name(random: Random) -> str:
    odd = random.choice(_ODD)
    return odd if random.random() < 0.7 else odd + random.choice(_ODD)


def _user(random: Random, *, tls: bool) -> str:
    """Return a principal that can be a KafkaUser; of one estate either all or none by certificate, for their names."""
    return f"User:{'CN=' if tls else ''}{random.choice(_KUBERNETES)}"
