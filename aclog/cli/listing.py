"""The commands of `aclog`, before any is imported: panels, first lines of help, and former names."""

from typing import NamedTuple


class Line(NamedTuple):
    """What is known of a command that is not imported: the first line of its help, and `brief` for the short list."""

    help: str
    brief: str = ""


PANELS = {
    "Ask": {
        "why": Line(
            "Show in a few lines why a request is allowed or denied, since when, by which change, and the smallest "
            "fix.",
            "Why a request is allowed or denied, and since when",
        ),
        "explain": Line(
            "Show every ACL that takes part in a decision, the determining one, and what would reverse the decision.",
            "Every rule that takes part in a decision",
        ),
        "authorize": Line(
            "Print ALLOWED or DENIED, and the determining rule as Kafka's audit log names it.",
            "ALLOWED or DENIED, and the determining rule",
        ),
        "who-can": Line(
            "List the principals with access to a resource, from which hosts, and by which rules.",
            "The principals with access to a resource",
        ),
        "what-can": Line(
            "List all permissions of a principal, on every resource and from every host, and the rules that grant "
            "them.",
            "All permissions of a principal",
        ),
        "when": Line(
            "List the intervals of a log in which a request was allowed, and the changes at which each began and "
            "ended.",
            "The periods in which a request was allowed",
        ),
        "acls": Line(
            "List, add, remove and copy ACLs, with the flags of kafka-acls.sh, and show their changes.",
            "List, add, remove and copy rules; their history",
        ),
        "query": Line(
            "Run one SELECT of DuckDB's SQL on the tables of a source: acls, changes, accesses and findings.",
            "SQL on the rules, changes, accesses and findings",
        ),
        "shell": Line(
            "Browse the state as a tree: /acl/id/<uuid>, /acl/resource, /acl/principal, /image, /scram, "
            "/delegationToken, ...",
            "Browse the state as files, as kafka-metadata-shell.sh",
        ),
        "console": Line(
            "Show access and its reasons in a browser; pages follow the source, and update by themselves.",
            "Access and its reasons in a browser",
        ),
    },
    "Check": {
        "lint": Line(
            "Find ACLs that are ineffective, redundant, or broader than intended.",
            "Rules that are ineffective, redundant or too broad",
        ),
        "diff": Line(
            "Show which requests a second state allows and the first one denies, and the reverse.",
            "The access that one state grants and another does not",
        ),
        "check": Line(
            "Prove a statement about one state or two, or refute it with a counterexample: exit code 0 if proved, 1 if "
            "refuted or unknown (settings that a running cluster does not show could refute it).",
            "Prove a statement about all requests, or refute it",
        ),
        "test": Line(
            "Test which principals have access, which have none, and which rule decides.",
            "Tests of rules: access and its absence",
        ),
        "review": Line(
            "Report what a pull request grants and revokes, what it breaks, and whether a check fails.",
            "What a pull request grants, revokes and breaks",
        ),
        "report": Line(
            "Write a report on the access of a source into one file: HTML without scripts or network, Markdown, or "
            "PDF.",
            "A report on access in one file, for auditors",
        ),
    },
    "Change": {
        "grant": Line(
            "Show the minimal rules that a client needs in addition to the existing ones; with --yes, add them.",
            "The minimal rules that a client needs; --yes adds them",
        ),
        "revoke": Line(
            "Show which of a principal's own rules grant the named access; with --yes, remove them.",
            "The rules that grant an access; --yes removes them",
        ),
        "plan": Line(
            "Show the changes that would give a target the desired ACLs; nothing is written to it.",
            "The changes from a target to the desired rules",
        ),
        "apply": Line(
            "Apply the changes of a plan, if the target still has the state that the plan is based on.",
            "Apply the changes of a plan",
        ),
        "drift": Line(
            "Show desired ACLs that are missing, and managed ACLs that are no longer desired and still exist.",
            "Desired rules missing, managed ones no longer desired",
        ),
    },
    "Access logs": {
        "accesses": Line(
            "Compare the ACLs with the requests in an access log: use, denials, suggestions, what-if, coverage.",
            "Usage, unused rules, denials, what-if",
        ),
        "spark": Line(
            "Metadata logs and access logs of any size, on Spark: history, when, decisions, usage, what-if. Requires "
            "the extra `spark` and Java 17.",
            "Logs of any size, on Spark",
        ),
    },
    "Run": {
        "serve": Line(
            "Run a node: a controller, a broker, or both, as defined by process.roles in CONFIG.",
            "Run an aclog node: controller, broker or both",
        ),
        "status": Line(
            "Show the leader of a running cluster, its high-water mark, and its replicas.",
            "The leader, high-water mark and replicas of a cluster",
        ),
        "pdp": Line(
            "Serve authorization decisions to proxies and programs over HTTP, by the rules of a source, which it "
            "follows.",
            "Decisions for proxies and programs, over HTTP",
        ),
        "mcp": Line(
            "Serve the Model Context Protocol to an assistant over stdin and stdout; read-only.",
            "Read-only tools for assistants (MCP)",
        ),
    },
    "Tools": {
        "log": Line(
            "Print the records of a log, verify it, copy it, or adopt it.",
            "Print, verify, copy or adopt a metadata log",
        ),
        "context": Line(
            "Name clusters and logs with their settings once, and use them in every command by -c NAME.",
            "Name clusters and logs, to use them by -c NAME",
        ),
        "doctor": Line(
            "Check versions, extras, clock, connection, login, permissions and the health of a log, and suggest fixes.",
            "Check connection, login, log and installation",
        ),
    },
    "More": {
        "rollback": Line("Show the changes that would undo an apply; nothing is written to the target."),
        "tokens": Line(
            "Create, renew, expire, describe and list delegation tokens; flags as of kafka-delegation-tokens.sh."
        ),
        "snapshot": Line("Write, check and list checkpoint files."),
        "export": Line(
            "Write a state (ACLs, credentials, tokens, features, other records as bytes), or the history of its ACLs."
        ),
        "import": Line(
            "Write ACLs, credentials, tokens and features into a log, atomically; a new directory becomes a new log."
        ),
        "migrate": Line(
            "Migrate ACLs, SCRAM credentials and delegation tokens from ZooKeeper to a metadata log, or back."
        ),
        "mirror": Line("Copy everything a quorum commits, byte for byte, into a directory of segments."),
        "sync": Line("Poll the ACLs of a cluster, and record the changes of each poll atomically in a log."),
        "format": Line("Format the log directories of CONFIG, with the flags of kafka-storage.sh format."),
        "schema": Line("Print the JSON schema of what a command prints as JSON, or list these schemas."),
        "completion": Line("Print the script that makes a shell complete commands, flags, and the names in a source."),
        "help": Line("Show the page of a command: what it does, each of its flags, and examples."),
    },
}
"""The commands in the order of `--help`, by panel."""

MORE = "More"
"""The panel of commands of rare tasks, which only the complete list describes."""

ACCESSES = {
    "usage": ("usage", "Report which ACLs were needed by the accesses of a log, and which could be removed."),
    "index": (
        "usage-index",
        "Record in an index when each ACL was last used; `aclog accesses unused` reads it for any window of days.",
    ),
    "unused": (
        "unused",
        "Report for each ACL whether no access matched it, it made no difference, or it was needed.",
    ),
    "denied": (
        "denied",
        "List denied requests of an access log by intent (produce, consume, ...), and the minimal ACLs to allow them.",
    ),
    "suggest": (
        "suggest",
        "Suggest the minimal rules that keep each allowed access of a log, and grant nothing beyond the current rules.",
    ),
    "simulate": (
        "simulate",
        "Show which logged accesses would be decided differently by a second set of rules.",
    ),
    "coverage": ("coverage", "Show the periods in which each broker logged accesses, and the gaps between them."),
}
"""The commands of `aclog accesses`: each with its former name, which is that of its module, and its first line."""

BELOW = {
    "acls": ("list", "history", "add", "remove", "copy"),
    "check": ("no-new-access", "equal", "not-granted", "only", "no-public"),
    "accesses": tuple(ACCESSES),
    "log": ("dump", "verify", "copy", "adopt"),
    "snapshot": ("create", "verify", "list"),
    "tokens": ("create", "renew", "expire", "describe", "list"),
    "context": ("list", "show", "add", "use", "remove", "rename", "path"),
    "spark": ("history", "when", "authorize", "follow", "ingest", "usage", "simulate", "usage-index", "suggest"),
}
"""The names of the commands of each group."""

FORMER = {former: ("accesses", name) for name, (former, _) in ACCESSES.items()}
"""The words of a command by its former name, which is still taken and in no list."""
