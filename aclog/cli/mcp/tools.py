"""All tools."""

from aclog.cli.mcp.arguments import Check, Diff, Explain, Lint, Unused, WhatCan, When, WhoCan
from aclog.cli.mcp.tool import Tool

_JUDGED = frozenset((0, 1))
"""1: the states differ, the claim is refuted, something was found."""
_RESOURCES = "topics, groups, transactional_ids, delegation_tokens, users or cluster"

TOOLS = (
    Tool(
        name="who_can",
        title="Who can do this",
        description="Everybody who may do an operation, or all of an intent, on resources: principals, hosts, and the "
        f"rules that allow it. Takes operation or intent, and {_RESOURCES}. The list is complete: a row of principals "
        "'except' is about everybody else too, whom no rule names. With 'pii-*' it is who may on any name that begins "
        "so; covers says whether on ALL of them or on SOME.",
        arguments=WhoCan,
        none="nobody can do this (but for super users)",
        narrow="name fewer resources, or give a host",
    ),
    Tool(
        name="what_can",
        title="What a principal can do",
        description="All that a principal may do, on every resource and from every host, with the rules that allow it "
        "and those that deny some of it; what everybody may do is part of it.",
        arguments=WhatCan,
        none="this principal can do nothing",
        narrow="give a host, or ask explain about one request, or who_can about one resource",
    ),
    Tool(
        name="explain",
        title="Why a request is allowed or refused",
        description="Why one request is ALLOWED or DENIED: the rule that decides (role DECIDES) with its id and, of a "
        "log, the offset and time at which it was added; every other rule that covers the resource; and the least "
        "change that would reverse the decision. Takes principal, operation and exactly one resource. Kafka decides "
        "WRITE, READ, DESCRIBE and so on each by itself, so ask about the operation that was refused. Without a rule "
        "that decides, the answer is DefaultDeny: no rule matches. 'pii-*' is explained if all names that begin so are "
        "decided alike; otherwise it is an error with an example of each.",
        arguments=Explain,
        none="there is no explanation",
        narrow="the command line shows all of it",
    ),
    Tool(
        name="diff",
        title="What another state gives and takes",
        description="Which requests a second state allows and the first one does not (GAINED), and which it no longer "
        "allows (LOST); exact, over all principals, hosts, operations and names. The first state is that of as_of. The "
        "second is that of to_as_of, or the first with a change. What changed since yesterday: as_of=yesterday.",
        arguments=Diff,
        none="every request is decided the same in both states",
        narrow="compare moments that are closer, or ask when or who_can about one resource",
        exit_codes=_JUDGED,
    ),
    Tool(
        name="check",
        title="Prove or refute a claim",
        description="Prove something about a state, or about two, for all requests; or refute it with examples. The "
        "verdict is PROVED or REFUTED; rows are what refutes it. not-granted and only take operation or intent, and "
        f"{_RESOURCES}.",
        arguments=Check,
        none="the claim is proved: nothing refutes it",
        narrow="claim something of fewer resources or principals",
        exit_codes=_JUDGED,
    ),
    Tool(
        name="when",
        title="When this was allowed",
        description="The intervals of a log in which something was allowed to somebody, each with the change, offset "
        "and time that began and ended it. Who lost access, and by which change: the end of the last interval. Takes "
        f"operation or intent, and {_RESOURCES}. Needs a log.",
        arguments=When,
        none="it was never allowed, as far back as the log reaches",
        narrow="name fewer resources or principals",
    ),
    Tool(
        name="lint",
        title="Rules that are odd",
        description="Rules that do not do what they seem to do, that do nothing, or that open what hardly anybody "
        "meant; each finding with its rules, where they stand, what is lost, and the mend.",
        arguments=Lint,
        none="no finding",
        narrow="select fewer lints",
        exit_codes=_JUDGED,
    ),
    Tool(
        name="unused",
        title="Rules that nobody needs",
        description="What accesses needed of each rule in a window of days, by the index of last use or the access "
        "log that the server was started with: which were never matched, matched but never needed, or needed. What is "
        "not known for the whole window is not judged, and said so.",
        arguments=Unused,
        none="there is no rule",
        narrow="read on with skip",
        exit_codes=_JUDGED,
    ),
)
