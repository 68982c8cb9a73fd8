"""`aclog who-can`: the principals with access."""

from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.question import AnswerFlags, AskedFlags, AskedHost
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group

app = Group()


@app.command("who-can")
def who_can(
    source: SourceFlags,
    action: AskedFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    host: AskedHost = None,
) -> None:
    """List the principals with access to a resource, from which hosts, and by which rules.

    The list is complete: a row "anyone but ..." includes all principals that are
    not named in any rule. Some settings of brokers, such as super.users, cannot
    be read from a running cluster. If no flag gives them, more principals may
    have access: a note and the last line of the output name these settings.

    With an intent, a principal is listed if it has all permissions of the
    intent. If no flag names a resource of one of its types (such as --group for
    consume), a permission on any resource of that type is enough. With a prefix
    such as --topic 'pii-*', a principal is listed if it has access to at least
    one name that begins with pii-; its row states whether to all or to some.

    [bold]Examples[/]

      aclog who-can --log DIR --operation READ --topic orders
      aclog who-can --log DIR --intent consume --topic orders --host 10.0.0.1
      aclog who-can --log DIR --operation READ --topic 'pii-*'
      aclog who-can --acls FILE --operation ALTER --cluster --format jsonl
    """
    from aclog.analysis.regions import EVERYONE
    from aclog.analysis.who_can import intent_permissions, permissions, with_extents
    from aclog.authorizer.settings import is_set
    from aclog.cli.answers import print_permissions
    from aclog.ops.policies import policies_of, read_premises

    action.check()
    how = output.choose()
    needs, query = action.needs(), action.query(EVERYONE, host)
    choice = source.choose()
    policies = policies_of(choice.image(), authorizer, action.requests())
    premises = read_premises(choice, authorizer.configs())
    answers = {
        generation: with_extents(
            intent_permissions(policy, needs, principals=EVERYONE, host=query.host)
            if needs
            else permissions(policy, query),
            action.resources(),
        )
        for generation, policy in policies.items()
    }
    has_extents = any(map(is_set, action.resources()))
    print_permissions(answers, how, choice.origins, none="no principal", premises=premises, has_extents=has_extents)
