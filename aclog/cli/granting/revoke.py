"""Runs `aclog revoke`."""

from aclog.analysis.regions.region import Direction
from aclog.authorizer.rule_change import RuleChange
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.granting import DoFlags, RevokedFlags
from aclog.cli.flags.intent import IntentFlags
from aclog.cli.flags.output import Output
from aclog.cli.flags.place import place_address
from aclog.cli.flags.target import TargetFlags
from aclog.cli.granting.finished import IntentChange, check_do, finish
from aclog.cli.granting.told import revocation_lines
from aclog.cli.planning.plan_output import CHANGES
from aclog.cli.planning.told_settings import told_settings
from aclog.places.found_place import find_place
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.granting.asked import Asked
from aclog.planning.granting.needs import asked_needs
from aclog.planning.granting.revoke import revoke
from aclog.planning.granting.stranded import stranded
from aclog.terminal.notices import note


def run_revoke(
    target: TargetFlags,
    flags: IntentFlags,
    revoked: RevokedFlags,
    do: DoFlags,
    authorizer: AuthorizerFlags,
    output: Output,
) -> int:
    """Revoke what is asked; return the exit code: 1, too, if something still allows it.

    Raises:
        ConfigError: flags that do not go together.
        RefusedError: the journal does not own a rule, too much is deleted, or others would gain access.
        MetadataError, OSError: the place, the journal or a file cannot be read or written.

    """
    check_do(do)
    address = place_address(target)
    limit = DeleteLimit.parse(revoked.max_deletes)
    needs = asked_needs(flags.intent, flags.resources(), whole=False)
    asked = Asked(principal=flags.who(), needs=needs, hosts=flags.rule_hosts())
    found = find_place(address, told_settings(authorizer), do.journal, note)
    taken = revoke(asked, found.state.contents, found.settings, found.kafka.generations)
    wanted = IntentChange(
        changes=[
            *(RuleChange(added=True, acl=acl) for acl in taken.added),
            *(RuleChange(added=False, acl=acl) for acl in taken.removed),
        ],
        aside=Direction.GAINED,
        adopt=revoked.adopt,
        limit=limit,
        nothing=f"nothing to do: no rule of {asked.principal} gives this alone",
        more=list(
            revocation_lines(
                asked.principal, taken, stranded(taken, found.state.contents, asked.principal), found.premises
            )
        ),
    )
    code = finish(found, wanted, do, output)
    return CHANGES if taken.still else code
