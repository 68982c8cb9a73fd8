"""`aclog who-can`: the principals with access."""

from aclog.cli.flags.common import AuthorizerFlags, SourceFlags
from aclog.cli.flags.question import AnswerFlags, AskedFlags, AskedHost
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

    The list is complete: a row "anyone but ..." includes principals that no
    rule names. Settings that a running cluster does not show, and no flag
    gives, may add to it: the last line and a note say so. With an intent,
    those are listed for whom all of it holds; a resource that is not named
    may be any one. With 'pii-*' those are listed who may do it on any name
    that begins with pii-, and each line says whether on all of them or on
    some.

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
    print_permissions(answers, how, choice.origins, none="nobody", premises=premises, has_extents=has_extents)
