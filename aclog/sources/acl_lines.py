"""ACLs as JSON lines: the output of `acls list --format jsonl`, the input of `--acls FILE`."""

from collections.abc import Callable, Iterable, Iterator

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.rule_object import rule_of_object
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object
from aclog.sources.text_lines import display_name, numbered


def accept(acl: StandardAcl) -> None:
    """Accept every ACL, those that Kafka would refuse to create as well: a log can contain them."""


def read_acls(path: str, check: Callable[[StandardAcl], None] = accept) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of a file of JSON lines (`-` is stdin, gzip is detected); `id` may be missing or null.

    `check` raises ConfigError on an ACL that the command refuses.

    Raises:
        ConfigError: a line that is not an ACL, or refused, with its number; or a damaged file.
        OSError: the file cannot be read.

    """
    return (rule for _, rule in parse_acls(numbered(path), display_name(path), check))


def parse_acls(
    lines: Iterable[tuple[int, bytes]], name: str, check: Callable[[StandardAcl], None] = accept
) -> Iterator[tuple[int, StandardAclWithId]]:
    """Yield the number and the ACL of each line. Raises as read_acls; `name` is that of the file, for errors."""
    for number, line in lines:
        try:
            rule = parse_acl(line)
            check(rule.acl)
        except ConfigError as error:
            raise ConfigError(f"{name}: line {number}: {error}") from error
        yield number, rule


def parse_acl(line: bytes) -> StandardAclWithId:
    """Return the ACL in one line.

    Raises:
        ConfigError: a key is missing, an enum name is unknown, or the id is not a UUID in Kafka's base64 form.

    """
    return rule_of_object(parse_object(line))
