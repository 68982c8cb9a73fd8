"""`aclog who-can`: the principals with access."""

from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import AskedFlags, AskedHost, ShowSince
from aclog.cli.flags.question import AnswerFlags
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
    since: ShowSince = False,
) -> None:
    """List the principals with access to a resource, from which hosts, and by which rules.

    The list covers all principals: those that are not named in any rule are
    included in a row "anyone except ...". Some settings of brokers, such as
    super.users, cannot be read from a running cluster. Pass them as flags.
    Otherwise principals may be missing from the list; a note and the last line
    of the output then list the unknown settings.

    Without --operation, a row has every operation that its principals have.

    With --intent (such as consume: READ on the topic and on a group), a principal
    is listed if it has all permissions that the intent needs. Without --group,
    access to at least one group is enough; likewise for the other resources. With a
    prefix such as --topic 'pii-*', a principal is listed if it has access to at
    least one name that begins with pii-; its row ends with "all queried topics"
    or "some queried topics".

    With --since, each row shows since when all of it has been allowed, and the
    change of the log that made it so.

    [bold]Examples[/]

      aclog who-can --log DIR --operation READ --topic orders
      aclog who-can --log DIR --topic orders
      aclog who-can --log DIR --intent consume --topic orders --host 10.0.0.1
      aclog who-can --log DIR --operation READ --topic 'pii-*' --since
      aclog who-can rules.jsonl --operation ALTER --cluster --format jsonl
      aclog who-can main:kafka --operation READ --topic orders
    """
    from aclog.analysis.regions import EVERYONE
    from aclog.analysis.who_can import granted, with_extents
    from aclog.authorizer.acl import deciding_filter
    from aclog.authorizer.settings import is_set
    from aclog.cli.answers import print_permissions, rows_of
    from aclog.ops.near import no_principal, unknown_topics
    from aclog.ops.policies import SUPER_USERS_UNKNOWN, lacks_super_users, policies_of, read_premises
    from aclog.terminal.output import note, note_each

    action.check(takes_any=True)
    how = output.choose()
    needs, query = action.needs(), action.query(EVERYONE, host)
    choice = source.choose()
    if not needs:
        choice.restrict([deciding_filter(each.resource_type, each.name, each.pattern_type) for each in query.resources])
    image = choice.image()
    if choice.is_restricted and not len(image.acls):  # near names are among the other ACLs
        choice.restrict(())
        image = choice.image()
    policies = policies_of(image, authorizer, action.requests())
    premises = read_premises(choice, authorizer.configs())
    answers = {
        generation: with_extents(granted(policy, needs, query), action.resources())
        for generation, policy in policies.items()
    }
    has_extents = any(map(is_set, action.resources()))
    queries = [need.query(EVERYONE, query.host) for need in needs] if needs else [query]
    is_empty = print_permissions(
        answers,
        how,
        choice.origins,
        none="no principal",
        premises=premises,
        has_extents=has_extents,
        since=rows_of(choice.source, image.end_offset, policies, queries, authorizer) if since else None,
    )
    resources, policy = action.resources(), next(iter(policies.values()))
    if not how.is_rows:
        note_each(no_principal(policy, resources, image) if is_empty else unknown_topics(resources, image))
        if lacks_super_users(choice, authorizer):
            note(SUPER_USERS_UNKNOWN)
