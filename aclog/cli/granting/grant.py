"""Runs `aclog grant`."""

from attrs import evolve

from aclog.analysis.regions.region import Direction
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG
from aclog.authorizer.rule_change import RuleChange
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.granting import DoFlags
from aclog.cli.flags.intent import IntentFlags
from aclog.cli.flags.output import Output
from aclog.cli.flags.place import place_address
from aclog.cli.flags.target import TargetFlags
from aclog.cli.granting.finished import IntentChange, check_do, finish
from aclog.cli.granting.told import grant_lines
from aclog.cli.planning.told_settings import told_settings
from aclog.cli.rule_warnings import warn_of_unmatched
from aclog.places.found_place import FoundPlace, find_place
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.granting.asked import Asked
from aclog.planning.granting.grant import grant
from aclog.planning.granting.needs import asked_needs
from aclog.planning.granting.sharing import shared
from aclog.terminal.notices import note


def run_grant(target: TargetFlags, flags: IntentFlags, do: DoFlags, authorizer: AuthorizerFlags, output: Output) -> int:
    """Grant what is asked; return the exit code.

    Raises:
        ConfigError: flags that do not go together.
        RefusedError: a rule denies what is asked, or others would lose access.
        MetadataError, OSError: the place, the journal or a file cannot be read or written.

    """
    check_do(do)
    address = place_address(target)
    needs = asked_needs(flags.intent, flags.resources(), whole=True)
    asked = Asked(principal=flags.who(), needs=needs, hosts=flags.rule_hosts())
    found = find_place(address, told_settings(authorizer), do.journal, note, hosts=filter(is_cidr, asked.hosts))
    return finish(found, _change(asked, flags, found), do, output)


def _change(asked: Asked, flags: IntentFlags, found: FoundPlace) -> IntentChange:
    # What is not known to be open is to be allowed by rules.
    settings = found.settings if found.settings_known else evolve(found.settings, allow_everyone=False)
    granted = grant(asked, found.state.contents, settings, found.kafka.generations)
    warn_of_unmatched(granted.added, lambda: settings.cidr)
    return IntentChange(
        changes=[RuleChange(added=True, acl=acl) for acl in granted.added],
        aside=Direction.LOST,
        adopt=False,
        limit=DeleteLimit(),
        nothing=found.premises.turning(allowed=True)
        .without({ALLOW_EVERYONE_CONFIG})  # what is not known to be open is allowed by rules
        .decided(f"nothing to do: {asked.principal} may {flags.intent} already"),
        more=list(
            grant_lines(
                asked.principal,
                granted,
                shared(granted.added, found.state.contents),
                found.premises.turning(allowed=False),
            )
        ),
    )
