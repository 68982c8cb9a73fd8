"""`aclog check`: proofs about states, over all principals, hosts and names; nothing is sampled."""

import typer

from aclog.cli.flags.answer import AnswerFlags
from aclog.cli.flags.asked import AskedFlags, SubjectFlags, asked_principals
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.second_settings import SecondSettingsFlags
from aclog.cli.flags.second_state import SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError

app = typer.Typer(
    name="check",
    help="Prove something about one state or two, or refute it with an example: exit code 0 if proved, 1 if refuted or "
    "unknown (settings that a running cluster does not show could refute it).",
    no_args_is_help=True,
)


@app.command("no-new-access")
@with_flags
def no_new_access(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    output: AnswerFlags,
) -> None:
    """Prove that a second state allows no request that the first one denies.

    [bold]Example[/]

      aclog check no-new-access --log DIR --change change.jsonl
    """
    from aclog.analysis.regions.region import Direction
    from aclog.cli.check.proof import Claim, prove_comparison
    from aclog.cli.policies import SideFlags

    claim = Claim(check="no-new-access", text="the second state allows no request that the first one denies")
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings)
    raise typer.Exit(prove_comparison(claim, flags, output.choose(), direction=Direction.GAINED))


@app.command()
@with_flags
def equal(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    output: AnswerFlags,
) -> None:
    """Prove that two states decide every request the same, whatever their ACLs look like.

    [bold]Example[/]

      aclog check equal --acls tidied.jsonl --to-bootstrap-server HOST:9092
    """
    from aclog.cli.check.proof import Claim, prove_comparison
    from aclog.cli.policies import SideFlags

    claim = Claim(check="equal", text="both states decide every request the same")
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings)
    raise typer.Exit(prove_comparison(claim, flags, output.choose(), direction=None))


@app.command("not-granted")
@with_flags
def not_granted(
    source: SourceFlags,
    asked: AskedFlags,
    subjects: SubjectFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """Prove that no principal, or none of these, is allowed an operation on any of the resources.

    With an intent: that for none of them all that it needs is allowed.
    'pii-*' is every name that begins with pii-.

    [bold]Examples[/]

      aclog check not-granted --log DIR --operation READ --topic 'pii-*'
      aclog check not-granted --log DIR --principal User:bob --intent produce --topic payments
    """
    from aclog.analysis.regions import principals
    from aclog.cli.check.proof import Claim
    from aclog.cli.check.question import Question

    asked.check()
    named = asked_principals(subjects.principal)
    who = "nobody may" if not named else f"{named[0]} may not" if len(named) == 1 else f"none of {', '.join(named)} may"
    claim = Claim(check="not-granted", text=f"{who} do it")
    question = Question(
        claim=claim,
        asked=asked,
        principals=principals.only(*named) if named else principals.EVERYONE,
        host=subjects.host,
    )
    raise typer.Exit(question.prove(source, authorizer, output.choose()))


@app.command()
@with_flags
def only(
    source: SourceFlags,
    asked: AskedFlags,
    subjects: SubjectFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """Prove that only these principals are allowed an operation on any of the resources, or hold an intent.

    [bold]Example[/]

      aclog check only --log DIR --operation WRITE --topic audit --principal User:auditor
    """
    from aclog.analysis.regions.principals import everyone_but
    from aclog.cli.check.proof import Claim
    from aclog.cli.check.question import Question

    asked.check()
    named = asked_principals(subjects.principal)
    if not named:
        raise ConfigError("--principal is missing: expected those who may")
    claim = Claim(check="only", text=f"nobody but {', '.join(named)} may do it")
    question = Question(claim=claim, asked=asked, principals=everyone_but(*named), host=subjects.host)
    raise typer.Exit(question.prove(source, authorizer, output.choose()))


@app.command("no-public")
@with_flags
def no_public(
    source: SourceFlags,
    asked: AskedFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """Prove that a principal whom nothing names is allowed nothing, or nothing of what is asked.

    [bold]Examples[/]

      aclog check no-public --log DIR
      aclog check no-public --log DIR --operation DESCRIBE --topic '*'
    """
    from aclog.analysis.regions.principals import EVERYONE
    from aclog.cli.check.proof import Claim
    from aclog.cli.check.question import Question

    asked.check_one()
    what = "none of what is asked" if asked.narrows() else "nothing"
    claim = Claim(check="no-public", text=f"a principal that nothing names is allowed {what}")
    question = Question(claim=claim, asked=asked, principals=EVERYONE, host=None)
    raise typer.Exit(question.prove(source, authorizer, output.choose(), unnamed=True))
