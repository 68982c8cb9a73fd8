"""YAML files of tests (docs/testing-rules.md)."""

from collections.abc import Iterator
from pathlib import Path

from aclog.analysis.rule_tests.case import Case
from aclog.authorizer.config import parse_super_users
from aclog.authorizer.generation import Generation, named_generation
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.file_tree import DirectoryTree
from aclog.sources.formats.node import Node
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.named_source import parse_source
from aclog.sources.repository.settings import SEMANTICS, AuthorizerSettings
from aclog.sources.rule_tests.case_nodes import CaseNodes
from aclog.sources.rule_tests.rule_test_file import RuleTestFile

_SETTINGS = ("super-users", "allow-everyone-if-no-acl-found", "semantics", "kafka-version", "cidr")
_KEYS = ("rules", *_SETTINGS, "tests")


def read_yaml_cases(path: str) -> RuleTestFile:
    """Return the tests of a YAML file.

    Raises:
        ConfigError: not YAML, an unknown key, a name that two tests have, or something that is not understood.
        OSError: the file cannot be read.

    """
    found = Path(path)
    documents = SourceFile(DirectoryTree(path), found.name).documents
    if len(documents) != 1:
        what = "no test" if not documents else f"{len(documents)} documents: expected one"
        raise ConfigError(f"{path}: {what}")
    (root,) = documents
    root.check_keys(_KEYS, "a file of tests")
    rules = root.get("rules")
    cases = tuple(_cases(root.required("tests", "a file of tests"), found.parent))
    return RuleTestFile(
        path=path,
        cases=cases,
        source=None if rules is None else parse_source(rules, found.parent),
        settings=_settings(root),
    )


def _cases(tests: Node, directory: Path) -> Iterator[Case]:
    names: dict[str, Node] = {}
    items = tests.items("tests")
    if not items:
        raise tests.error("tests is empty: expected at least one test")
    for item in items:
        test = CaseNodes.of(item, directory)
        known = names.setdefault(test.name, item)
        if known is not item and item.get("name") is not None:
            raise item.error(f"the name {test.name[:60]!r} is that of the test on line {known.line}")
        yield from test.cases()


def _settings(root: Node) -> AuthorizerSettings:
    users, everyone, semantics, version, cidr = (root.get(key) for key in _SETTINGS)
    chosen = None if semantics is None else semantics.text("semantics")
    if semantics is not None and chosen not in SEMANTICS:
        raise semantics.error(f"semantics {chosen!r} is not one of {', '.join(SEMANTICS)}")
    return AuthorizerSettings(
        super_users=None if users is None else _super_users(users),
        allow_everyone=None if everyone is None else everyone.boolean("allow-everyone-if-no-acl-found"),
        semantics=chosen,
        cidr=_ranges(version, cidr),
    )


def _ranges(version: Node | None, cidr: Node | None) -> bool | None:
    """Return whether the Kafka that decides takes a host with a slash for a range; None if the file does not say."""
    ranges = None if cidr is None else cidr.boolean("cidr")
    if version is None:
        return ranges
    try:
        named = named_generation(
            version.text("kafka-version"),
            ranges,
            version_name="kafka-version",
            ranges_text=f"cidr: {str(ranges).lower()}",
        )
    except ConfigError as error:
        raise version.error(str(error)) from error
    return named is Generation.V4_4


def _super_users(node: Node) -> str:
    """Return a list of principals, or a text in the syntax of super.users, as that text."""
    if isinstance(node.value, tuple):
        text = ";".join(item.text("a super user") for item in node.items("super-users"))
    else:
        text = node.text("super-users")
    try:
        parse_super_users(text)
    except ConfigError as error:
        raise node.error(str(error)) from error
    return text
