"""Writes a change of rules for `--change`: JSON lines, in an order that opens nothing on the way."""

from collections.abc import Iterable
from pathlib import Path

from aclog.authorizer.acl import AclPermissionType, StandardAcl
from aclog.cli.transfer.output import open_output
from aclog.metalog.errors import ConfigError
from aclog.sources.text_lines import STDIN


def safe_order(acl: StandardAcl, *, added: bool) -> int:
    """Return the place of a change in an order that, rule by rule, opens nothing on the way: DENY first, and last."""
    allows = acl.permission_type == AclPermissionType.ALLOW
    return (1 if allows else 0) if added else (2 if allows else 3)


def write_change_file(path: Path, lines: Iterable[str], flag: str) -> str:
    """Write the lines of a change; return "written", or "already there" if the file has exactly these.

    Raises:
        ConfigError: `path`, which `flag` named, is stdout, or exists and says something else.
        OSError: it cannot be written.

    """
    if str(path) == STDIN:
        raise ConfigError(f"{flag} -: expected a file: what was found goes to stdout")
    content = "".join(f"{line}\n" for line in lines).encode()
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return "already there"
        raise ConfigError(f"{path}: exists already, and is not this change: expected a new file for {flag}")
    with open_output(path, binary=False) as file:
        file.write(content)
    return "written"
