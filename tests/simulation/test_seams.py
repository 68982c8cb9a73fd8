"""The contract of aclog.metalog.machine: what reaches the machine does so where a simulation can stand in for it."""

import ast
from pathlib import Path

import pytest

import aclog

ROOT = Path(aclog.__file__).parent
PACKAGES = ("metalog", "snapshots", "client", "server", "planning", "targets", "usage/index")
MORE = ("ops/sync.py", "ops/sync_response.py", "ops/first_poll.py", "ops/removal_limit.py")
_PURE = {
    "os": ("O_", "SEEK_", "W_OK", "path", "strerror", "environ"),
    "time": (),
    "random": (),
    "secrets": ("compare_digest",),
    "threading": ("TIMEOUT_MAX",),
    "fcntl": ("LOCK_", "F_"),
    "shutil": ("copyfileobj",),
    "tempfile": (),
    "subprocess": (),
    "sqlite3": ("Connection", "Error"),
    "socket": ("SOCK_", "SOL_", "SO_", "AF_", "IPPROTO_", "IPV6_", "SHUT_", "gaierror", "has_dualstack_ipv6", "socket"),
}
"""What may be used of these modules: constants, pure functions, and sockets as a type. Types in quotes are no use."""
_TYPES = {"socket"}

EXCEPTIONS = {
    "metalog/machine.py": "the seam itself",
    "metalog/filelog/locks.py": "holder_of asks who holds a lock, for a command's message; no node calls it",
    "snapshots/compaction.py": "bases above 50,000 ACLs are folded by a process, on files in memory",
    "snapshots/fold_process.py": "that process",
    "snapshots/helper_process.py": "that process",
    "snapshots/log_image.py": "a cache of commands, for logs that are not a node's",
    "snapshots/image_file.py": "image files are mapped, and made by a process, above 4 MiB",
    "server/controller/snapshot_generator.py": "as image_file.py",
    "server/telemetry.py": "counters: their lock is never held across a call that blocks",
    "usage/index/stored.py": "an index in a store: only commands use it",
    "usage/index/tallies.py": "Spool: only commands use it",
}
"""Files that reach the machine by themselves, and why."""


def _uses(path: Path) -> list[str]:
    """Return what a module uses of the machine by itself, with line numbers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _PURE:
            found += [f"{node.lineno}: from {node.module} import {each.name}" for each in node.names]
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _PURE):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
                found.append(f"{node.lineno}: open")
            continue
        module, name = node.value.id, node.attr
        is_pure = name.startswith(_PURE[module]) if _PURE[module] else False
        if not is_pure or (name in _TYPES and node in called):
            found.append(f"{node.lineno}: {module}.{name}")
    return found


MODULES = sorted(path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MODULES += MORE


def test_modules_reach_the_machine_through_the_seam():
    wrong = {name: uses for name in MODULES if name not in EXCEPTIONS and (uses := _uses(ROOT / name))}
    # `time` is also the name of a class of datetime.
    wrong.pop("snapshots/moments.py", None)
    assert wrong == {}


@pytest.mark.parametrize("name", sorted(set(EXCEPTIONS) - {"server/controller/snapshot_generator.py"}))
def test_no_exception_is_out_of_date(name):
    assert _uses(ROOT / name), f"{name} reaches nothing by itself: remove its exception"
