"""What `aclog console --edit` writes to."""

from aclog.cli.console.flags import FindingsFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.place import given_address
from aclog.cli.flags.source import SourceFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.planning.told_settings import told_settings
from aclog.console.draft.editing import Editing
from aclog.metalog.errors import ConfigError
from aclog.terminal.notices import note


def editing_of(source: SourceFlags, findings: FindingsFlags, authorizer: AuthorizerFlags) -> Editing:
    """Return what makes and applies plans. Raises ConfigError: the source is no place, or there is no journal."""
    if findings.journal is None:
        raise ConfigError("--edit: expected --journal FILE, with what this source of rules owns")
    target = TargetFlags(
        log=source.log,
        bootstrap_server=source.bootstrap_server,
        bootstrap_controller=source.bootstrap_controller,
        command_config=source.command_config if source.log is None else None,
    )
    address = given_address(target)
    if address is None:
        raise ConfigError("--edit: expected a place: --log DIR, --bootstrap-server or --bootstrap-controller HOST:PORT")
    return Editing(
        address=address,
        told=told_settings(authorizer, is_warned=True),
        journal=findings.journal.absolute(),
        others=findings.other_journals,
        notify=note,
    )
