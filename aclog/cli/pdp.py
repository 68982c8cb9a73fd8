"""`aclog pdp`: a decision point for proxies and programs."""

from pathlib import Path

from click.exceptions import Exit

from aclog.cli.flags.commands import PdpFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group

app = Group()


@app.command()
def pdp(source: SourceFlags, flags: PdpFlags, authorizer: AuthorizerFlags) -> None:
    """Serve authorization decisions to proxies and programs over HTTP, by the rules of a source, which it follows.

    Implements OpenID AuthZEN's Authorization API 1.0 (evaluation, evaluations,
    search, metadata), OPA's data API at /v1/data/kafka/authz, and Envoy's external
    authorization over HTTP below /ext_authz. It listens beyond the loopback
    interface only if clients have tokens or certificates. Without a state, or
    with one that is unconfirmed for longer than --max-age, the response is 503,
    never true. SIGHUP reads rules in files, mapping, tokens and certificate
    again, and reopens the files that it appends to. With --workers, no answer
    is older than one that another process has sent.

    [bold]Examples[/]

      aclog pdp --log DIR
      aclog pdp --bootstrap-controller HOST:9093 --listen 0.0.0.0:8443 --tls-cert C --tls-key K --tokens T
      aclog pdp --acls rules.jsonl --mapping mapping.yaml --audit audit.jsonl
      aclog pdp --mapping mapping.yaml --check-mapping
    """
    if flags.check_mapping:
        raise Exit(_check_mapping(flags.mapping))
    from aclog.ops.extras import need_web_extra

    need_web_extra()
    from aclog.cli.pdp_run import run_pdp

    run_pdp(source, flags, authorizer)


def _check_mapping(path: Path | None) -> int:
    """Print what a mapping means, and return the exit code: 1 if a case of it never counts."""
    from aclog.console.pdp.mapping import mapping_lines, read_mapping
    from aclog.metalog.errors import printable
    from aclog.terminal.output import say

    unreachable: list[str] = []
    mapping = read_mapping(path, unreachable=unreachable)
    for line in (*mapping_lines(mapping), *(f"unreachable: {each}" for each in unreachable)):
        say(printable(line))
    return 1 if unreachable else 0
