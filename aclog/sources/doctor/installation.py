"""The installation: versions, extras, Java, the clock, the file of contexts."""

import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from aclog.metalog.errors import MetadataError
from aclog.metalog.native import native, native_text
from aclog.sources.contexts.choosing import choose_context
from aclog.sources.contexts.config_place import config_file
from aclog.sources.doctor.finding import Finding, fail, ok, text_of, warn

_LIBRARIES = ("numpy", "kio", "cryptography", "attrs", "typer", "rich")
_EXTRAS = (
    ("kafka", "confluent-kafka", "logs on a topic (kafka://...)"),
    ("zookeeper", "kazoo", "ACLs in ZooKeeper, and migrating from it"),
    ("parquet", "pyarrow", "access logs in Parquet, and Arrow tables"),
    ("spark", "pyspark", "the `aclog spark` commands"),
)
_JAVA_SECONDS = 20
_LEAST_JAVA = 17
_JAVA_TODO = "`aclog spark` needs Java 17 or later: install one, and set JAVA_HOME or PATH"


def installation(context: str | None = None) -> Iterator[Finding]:
    """Yield what is found about this machine, whatever the source; `context` is the one that the command names."""
    yield ok("aclog", f"{version('aclog')}, {native_text}", "" if native else "it decides faster with: make native")
    yield ok("python", f"{platform.python_version()} ({platform.system()} {platform.machine()})")
    yield _libraries()
    for extra, package, purpose in _EXTRAS:
        yield _extra(extra, package, purpose)
    yield _java()
    yield _clock()
    yield _contexts(context)


def _libraries() -> Finding:
    found = {name: _version(name) for name in _LIBRARIES}
    if missing := [name for name, number in found.items() if number is None]:
        return fail("libraries", f"missing: {', '.join(missing)}", "pip install --force-reinstall aclog")
    return ok("libraries", ", ".join(f"{name} {number}" for name, number in found.items()))


def _extra(extra: str, package: str, purpose: str) -> Finding:
    number = _version(package)
    if number is None:
        return ok(f"extra {extra}", "not installed", f"for {purpose}: pip install 'aclog[{extra}]'")
    return ok(f"extra {extra}", f"{package} {number}, for {purpose}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> Finding:
    if _version("pyspark") is None:
        return ok("java", "not needed without the extra spark")
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None or not Path(command).exists():
        return warn("java", "not found" if command is None else f"{command}: no such file (JAVA_HOME)", _JAVA_TODO)
    try:
        done = subprocess.run(  # noqa: S603 - the Java that Spark would start
            [command, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return warn("java", f"{command}: {error}", _JAVA_TODO)
    return java_finding(command, done.stderr)


def java_finding(command: str, said: str) -> Finding:
    """Return whether Spark can use a Java that says this of its version."""
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', said)
    if found is None:
        return warn("java", f"{command} -version does not tell its version", _JAVA_TODO)
    if int(found[2]) < _LEAST_JAVA:
        return warn("java", f"{found[1]} at {command}", _JAVA_TODO)
    return ok("java", f"{found[1]} at {command}")


def _clock() -> Finding:
    local = datetime.now().astimezone()
    zone = os.environ.get("ACLOG_TIMEZONE") or "UTC, unless --timezone says another"
    text = f"{local:%Y-%m-%d %H:%M:%S %z} here; times without a zone are taken for {zone}"
    if not time.get_clock_info("monotonic").monotonic:
        return warn("clock", f"{text}; this system has no monotonic clock", "do not set the clock while a node runs")
    return ok("clock", text)


def _contexts(name: str | None) -> Finding:
    try:
        path, chosen = config_file(), choose_context(name)
    except (MetadataError, OSError) as error:
        return fail("contexts", text_of(error))
    if chosen is not None:
        return ok("contexts", f"{chosen.context.name} of {path}, {chosen.by}: {chosen.context.address}")
    if path is None or not path.exists():
        return ok("contexts", "none", "`aclog context add NAME` names a cluster or a log")
    return ok("contexts", f"{path}: none is chosen", "`aclog context use NAME` chooses one")
