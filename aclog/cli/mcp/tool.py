"""A tool: what it is for, what it takes, and which command answers it."""

from attrs import frozen

from aclog.cli.mcp.arguments import Arguments


@frozen(kw_only=True)
class Tool:
    """A question that an assistant may ask."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    none: str
    """What an answer without rows means."""
    narrow: str
    """How to ask for less."""
    exit_codes: frozenset[int] = frozenset((0,))
    """Those of the command with which its answer is whole."""
