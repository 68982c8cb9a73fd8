"""`aclog what-can`: all that a principal may do."""

from typing import Annotated

from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import AskedHost, ShowSince
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option

app = Group()


@app.command("what-can")
def what_can(
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    principal: Annotated[str, Option("--principal", metavar="TYPE:NAME", help="The principal.", show_default=False)],
    output: AnswerFlags,
    host: AskedHost = None,
    since: ShowSince = False,
) -> None:
    """List all permissions of a principal, on every resource and from every host, and the rules that grant them.

    Rules for all principals (User:*) are included. The rules that deny a part of
    a permission are below it; the other DENY rules for this principal are at the
    end. With --since, each permission shows since when all of it has been allowed,
    and the change of the log that made it so.

    [bold]Examples[/]

      aclog what-can --log DIR --principal User:bob
      aclog what-can --log DIR --principal User:bob --since
      aclog what-can --log DIR --principal User:bob --host 10.0.0.1 --format jsonl
    """
    from aclog.analysis.regions import Query, only
    from aclog.analysis.who_can import RulesAbout, permissions
    from aclog.authorizer.acl import host_address
    from aclog.cli.answers import print_denies, print_permissions, rows_of
    from aclog.cli.flags.question import asked_principals, question_principal
    from aclog.ops.near import no_permission
    from aclog.ops.policies import policies_of, read_premises
    from aclog.terminal.output import note_each

    how = output.choose()
    [subject] = asked_principals([question_principal(principal)])
    query = Query(principals=only(subject), host=None if host is None else host_address(host))
    choice = source.choose()
    image = choice.image()
    policies = policies_of(image, authorizer)
    premises = read_premises(choice, authorizer.configs())
    answers = {generation: list(permissions(policy, query)) for generation, policy in policies.items()}
    dated = rows_of(choice.source, image.end_offset, policies, [query], authorizer) if since else None
    is_empty = print_permissions(answers, how, choice.origins, none="nothing", premises=premises, since=dated)
    if is_empty and subject not in next(iter(policies.values())).settings.super_users:
        note_each([no_permission(image.acls, subject)])
    if how.is_rows:
        return
    denies = {rule for group in answers.values() for permission in group for rule in permission.denies}
    denying = {
        generation: [rule for rule in RulesAbout.of(policy, query).denying if rule not in denies]
        for generation, policy in policies.items()
        if subject not in policy.settings.super_users  # nothing is denied to those
    }
    print_denies(denying, choice.origins)
