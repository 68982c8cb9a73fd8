"""`aclog review`: a pull request against a repository of rules, in one comment."""

import typer

from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.repository import RepositoryFlags
from aclog.cli.review.flags import ChangeFlags, ReviewFlags

app = typer.Typer()


@app.command()
@with_flags
def review(change: ChangeFlags, flags: ReviewFlags, repository: RepositoryFlags) -> None:
    """Say what a pull request really gives and takes, what it breaks, and whether that is acceptable.

    Compares the rules in the files of two commits, or of a commit and the
    working tree: the effective change, proofs that what must not change does
    not (review.untouched in aclog.toml), tests of rules, findings of lint
    that are new, and recent accesses that would be decided differently.
    Exit code 0 if nothing of --fail-on is found, 1 if something is, 2 for
    bad input. It needs no access to a cluster.

    [bold]Examples[/]

      aclog review kafka --base origin/main
      aclog review kafka --base main --tests tests/rules.yaml --topics topics.txt
      aclog review kafka --base main --accesses accesses.parquet --format markdown
      aclog review --base origin/main --out markdown=review.md --out sarif=review.sarif
      aclog review kafka --base HEAD~1 --head HEAD --fail-on gained,tests
    """
    from aclog.cli.review.report import print_review

    raise typer.Exit(print_review(change, flags, repository))
