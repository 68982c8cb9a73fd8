"""Tests that compare with another source: `same_as` and `no_new_access`."""

from pathlib import Path

from aclog.analysis.rule_tests.no_new_access import NoNewAccess
from aclog.analysis.rule_tests.same_as import SameAs
from aclog.authorizer.origin import origin_text
from aclog.sources.formats.node import Node
from aclog.sources.named_source import parse_source
from aclog.sources.rule_tests.compared import AccessesFile, SourcePolicy
from aclog.sources.rule_tests.node_values import one_or_more, resource_of


def same_as_case(node: Node, *, test: str, directory: Path) -> SameAs:
    """Return the case of a `same_as`; paths begin at `directory`. Raises ConfigError: it is not understood."""
    node.check_keys(("source", "accesses"), "same_as")
    source, accesses = node.required("source", "same_as"), node.get("accesses")
    return SameAs(
        test=test,
        origin=node.origin,
        other=SourcePolicy(source=parse_source(source, directory)),
        accesses=None
        if accesses is None
        else AccessesFile(path=str(directory / accesses.text("accesses")), place=origin_text(accesses.origin)),
    )


def no_new_access_case(node: Node, *, test: str, directory: Path) -> NoNewAccess:
    """Return the case of a `no_new_access`; paths begin at `directory`. Raises ConfigError: it is not understood."""
    node.check_keys(("than", "except"), "no_new_access")
    return NoNewAccess(
        test=test,
        origin=node.origin,
        than=SourcePolicy(source=parse_source(node.required("than", "no_new_access"), directory)),
        but=tuple(resource_of(each) for each in one_or_more(node.get("except"), "except")),
    )
