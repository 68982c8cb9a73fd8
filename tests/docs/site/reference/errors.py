"""The page of errors: every class of the tree, from the code, and what to do about it."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from attrs import frozen

from aclog.protocol import error_codes
from tests.docs.site.places import ROOT
from tests.docs.site.reference.tables import prose, table

_ROOT = "MetadataError"
_INTRODUCTION = """Every error that aclog raises on purpose is an `aclog.MetadataError` with a text of one line: what
is wrong, where, and what was expected. A command prints it on stderr after `aclog:` and ends with exit code 2. Any
other exception is a bug: please report it.
"""
MENDS = {
    _ROOT: "Read its line: it says what is wrong, where, and what was expected.",
    "ConfigError": "Correct the flag, the property, the argument or the line of the file that it names.",
    "DecodeError": "`aclog log verify DIR` says how far the log is sound. Copy the file again from where it came; of a "
    "node, see what its operations page says of damage.",
    "ReplayError": "As of a DecodeError: the bytes are whole, and contradict each other. Often two logs were mixed.",
    "NewerKafkaError": "Use a newer aclog, or the state before the record (`--as-of`).",
    "LogError": "Check the path, the disk and its free space, and whether the log was opened and not closed.",
    "LockedError": "Stop the other writer, or read instead of writing. A running Kafka's log is never written to.",
    "FencedError": "Nothing: another writer is the active one. Open the log again to write again.",
    "StaleError": "Find out why the cluster is silent, or accept an older state (`max_age`).",
    "CheckpointError": "Take another checkpoint: a copy that was cut off is the usual cause.",
    "EncodeError": "Shorten the name or the value that it names: Kafka could not write it either.",
    "AuthorizerNotReadyError": "Try again: the log is still being replayed.",
    "InvalidRequestError": "Ask what a client can: a principal as TYPE:NAME, an operation and a resource that exist.",
    "AuthorizationError": "`aclog explain` says which rule decided, and what would allow it.",
    "AclRequestError": "As its text says; nothing was changed.",
    "UnreachableError": "Check address, port and firewall; `aclog doctor` goes through them one by one.",
    "LoginError": "Check `--command-config`: user, password, mechanism, certificates.",
    "QuorumRefusedError": "Give the principal CLUSTER_ACTION on the cluster, or name the controllers' listener.",
    "FollowingEndedError": "Start again with an empty directory, once it is clear which log is the right one.",
    "ObserverFailedError": "Start again, as a supervisor does by itself; please report the error.",
    "CommittedRecordsLostError": "Find out what happened to the quorum before anything is written to it.",
    "OtherClusterError": "Name the servers of the cluster that the directory is from.",
    "OtherLogError": "`aclog log adopt CONFIG`, once it is clear that this topic is the log.",
    "RefusedError": "Change the password, the certificate or the ACL that the broker names.",
    "RemovedError": "Begin with a checkpoint that reaches to where the topic begins.",
    "RequestError": "As the error code says, below.",
    "OutcomeUnknownError": "Look whether the change is there before it is made again.",
    "MalformedRequestError": "Correct the client: no server accepts this request.",
    "AuthenticationError": "Check user, password and mechanism; a server never says which of them is wrong.",
    "AuthenticationNotReadyError": "Try again: the log is still being replayed.",
    "NoMatchingRuleError": "Add a rule for the certificate's name to `ssl.principal.mapping.rules`, or `DEFAULT`.",
    "FrameError": "Check that the port is a Kafka listener, with TLS or without it as the client has it.",
    "FoldError": "Nothing: the state is what it was, and it is tried again.",
    "RefusedPollError": "Look at what would go; `aclog sync --once --accept-removal N` records it.",
    "WrongClusterError": "Name the cluster that the directory records, or another directory.",
    "EvaluationError": "Give the expression a value that can be known without a plan, or leave the file out.",
    "TooLargeError": "Simplify the expression.",
    "StoreError": "Check ZooKeeper; look whether the change is there before it is made again.",
    "DisconnectedError": "Wait: the client connects again by itself.",
    "ConflictError": "Do it again: somebody else was faster, and nothing was changed.",
}
"""What to do, by class; a class that is not here has that of the one it is derived from."""


@frozen(kw_only=True)
class ErrorClass:
    """A class of the tree: the module that defines it, what it is derived from, its docstring's first paragraph."""

    name: str
    module: str
    bases: tuple[str, ...]
    text: str


@cache
def error_classes() -> dict[str, ErrorClass]:
    """Return each class below MetadataError whose name is public, and MetadataError itself, read from the sources."""
    found: dict[str, ErrorClass] = {}
    for path in sorted((ROOT / "aclog").rglob("*.py")):
        source = path.read_text("utf-8")
        if re.search(r"^class \w+\(.*(?:Error|Exception)\b.*\):", source, re.MULTILINE):
            module = str(path.relative_to(ROOT)).removesuffix(".py").replace("/", ".")
            for each in _classes(ast.parse(source), module):
                if "Exception" not in each.bases or each.name == _ROOT:
                    found[each.name] = each
    return {name: each for name, each in found.items() if _in_tree(name, found) and not name.startswith("_")}


def errors_page() -> str:
    """Return the page."""
    classes = error_classes()
    rows = [
        (
            "<br>".join([f"`{each.name}`", *(f"a `{base}`" for base in each.bases if base in classes)]),
            prose(each.text),
            MENDS.get(each.name) or _inherited(each, classes),
        )
        for each in sorted(classes.values(), key=lambda each: _path(each, classes))
    ]
    codes = {value: name for name, value in vars(error_codes).items() if name.isupper() and isinstance(value, int)}
    return "\n".join(
        [
            "# Errors\n",
            _INTRODUCTION,
            table(("class", "means", "what to do"), rows),
            "## Error codes of nodes\n",
            "What nodes send and interpret, by Kafka's names.\n",
            table(("code", "name"), [(str(code), f"`{name}`") for code, name in sorted(codes.items())]),
        ]
    )


def _inherited(each: ErrorClass, classes: dict[str, ErrorClass]) -> str:
    base = next(classes[name] for name in each.bases if name in classes)
    return MENDS.get(base.name) or _inherited(base, classes)


def _path(each: ErrorClass, classes: dict[str, ErrorClass]) -> tuple[str, ...]:
    base = next((classes[name] for name in each.bases if name in classes), None)
    return (each.name,) if base is None else (*_path(base, classes), each.name)


def _classes(tree: ast.Module, module: str) -> Iterator[ErrorClass]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = tuple(base.id for base in node.bases if isinstance(base, ast.Name))
            text = (ast.get_docstring(node) or "").partition("\n\n")[0]
            yield ErrorClass(name=node.name, module=module, bases=bases, text=text)


def _in_tree(name: str, found: dict[str, ErrorClass]) -> bool:
    return name == _ROOT or (name in found and any(_in_tree(base, found) for base in found[name].bases))
