"""Real Kafka software for the tests and the benchmarks: its jars, our Java sources, and its tools.

`python -m tests.support.kafka.jvm [VERSION...]` gathers and compiles ahead of time (the Makefile does); `class_path()`
does the same when something is missing. Everything is made once, in build/jvm, under a lock, so parallel test processes
may all ask. The network is needed the first time only.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from attrs import frozen

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "jvm"
KAFKA_VERSION = "4.3.1"
"""The Kafka whose bytes and decisions aclog has."""
KAFKA_39 = "3.9.1"
"""The last Kafka with ZooKeeper; its jars bring ZooKeeper 3.8.4."""
KAFKA_44 = "4.4.0"
"""The Kafka with CIDR ranges in ACLs, whose format leaves its records in the 0-0 checkpoint."""
SOURCES = {
    KAFKA_VERSION: ("tests/jvm/java/*.java", "benchmarks/java/*.java"),
    KAFKA_39: ("tests/jvm/java-3.9/*.java", "tests/jvm/java/Request.java", "tests/jvm/java/ToolPipe.java"),
}
"""Our own sources, by the Kafka that they are compiled against; any other since 4.0 has `_EVERY_4`."""
_EVERY_4 = ("tests/jvm/java/*.java",)
_LAST_SHELL = (4, 3)
"""The last release with a published kafka-shell."""

QUICK = ("-XX:+UseSerialGC", "-Xshare:auto", "-XX:TieredStopAtLevel=1")
"""A JVM of a test hardly lives long enough to be worth optimizing."""
PRODUCTION = (
    "-server",
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""The JVM that kafka-server-start.sh starts: what a benchmark is compared with. Of two -Xmx, the later one counts."""
CLASS_LISTS = "ACLOG_CLASS_LISTS"
"""The environment variable that has each JVM list the classes that it loads, in this directory."""


class JvmMissingError(Exception):
    """No JDK 17 or later, no Maven, or no way to get Kafka's jars: tests that need them fail, they do not skip."""


@frozen(kw_only=True)
class ToolResult:
    """What a finished Java program said."""

    exit_code: int
    out: str
    err: str


def program(name: str) -> str:
    """The path of `java`, `javac` or `mvn`."""
    if home := os.environ.get("JAVA_HOME"):
        candidate = Path(home) / "bin" / name
        if candidate.exists():
            return str(candidate)
    if path := shutil.which(name):
        return path
    raise JvmMissingError(f"`{name}` is not installed: the tests against real Kafka need a JDK 17 and Maven")


@contextmanager
def exclusively(name: str) -> Iterator[None]:
    """Hold build/jvm/<name>.lock: one process of this machine's checkout at a time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        yield


def jar_directory(version: str = KAFKA_VERSION) -> Path:
    """The directory with the jars of a Kafka, gathered by Maven on first use and moved into place whole."""
    directory = BUILD / f"kafka-{version}"
    if directory.is_dir():
        return directory
    with exclusively(f"kafka-{version}"):
        if not directory.is_dir():
            part = Path(tempfile.mkdtemp(prefix=f"kafka-{version}-", dir=BUILD))
            _copy_dependencies(version, part)
            part.rename(directory)
    return directory


def _copy_dependencies(version: str, directory: Path) -> None:
    flags = [f"-Dkafka.version={version}", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
    flags.append("-DexcludeArtifactIds=slf4j-reload4j")  # Kafka 3.9 has a binding of its own; two are one too many
    if release_of(version) > _LAST_SHELL:
        flags.append("-Dkafka.without.shell=true")
    try:
        pom = str(ROOT / "tests" / "jvm" / "pom.xml")
        _maven(f"the jars of Kafka {version}", "dependency:copy-dependencies", "-f", pom, *flags)
    except JvmMissingError:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def streams_jar() -> Path:
    """Kafka Streams, gathered by Maven on first use; without RocksDB, whose jar is as large as all the others."""
    directory = BUILD / f"kafka-streams-{KAFKA_VERSION}"
    jar = directory / f"kafka-streams-{KAFKA_VERSION}.jar"
    with exclusively("kafka-streams"):
        if not jar.exists():
            artifact = f"-Dartifact=org.apache.kafka:kafka-streams:{KAFKA_VERSION}"
            _maven(f"Kafka Streams {KAFKA_VERSION}", "dependency:copy", artifact, f"-DoutputDirectory={directory}")
    return jar


def _maven(artifact: str, *arguments: str) -> None:
    done = subprocess.run([program("mvn"), "-B", "-q", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise JvmMissingError(f"Maven could not get {artifact}:\n{done.stdout}{done.stderr}")


def release_of(version: str) -> tuple[int, int]:
    """The major and minor number of a version such as 4.3.1 or 4.4.0-rc2."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor.partition("-")[0])


def own_sources(version: str) -> tuple[str, ...]:
    """The patterns of our own sources that are compiled against a Kafka; none for one before 4.0 but 3.9.1."""
    return SOURCES.get(version, _EVERY_4 if release_of(version) >= (4, 0) else ())


def own_classes(version: str = KAFKA_VERSION) -> Path:
    """Return the jar of our own classes, compiled against a Kafka that has any; again when a source is newer."""
    name = "classes" if version == KAFKA_VERSION else f"classes-{version}"
    return compiled(name, own_sources(version), f"{jar_directory(version)}/*")


def compiled(name: str, patterns: Sequence[str], jars: str) -> Path:
    """Return build/jvm/NAME.jar of these sources, compiled against `jars`; again when one, or this list, is newer."""
    jar = BUILD / f"{name}.jar"
    sources = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    with exclusively(name):
        if not jar.exists() or jar.stat().st_mtime < max(path.stat().st_mtime for path in (*sources, Path(__file__))):
            with tempfile.TemporaryDirectory(dir=BUILD) as directory:
                _compile(sources, jars, Path(directory))
                _pack(Path(directory), jar)
    return jar


def _compile(sources: Sequence[Path], jars: str, directory: Path) -> None:
    command = [program("javac"), "--release", "17", "-nowarn", "-proc:none", "-cp", jars, "-d", str(directory)]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise JvmMissingError(f"javac refused our sources (a JDK 17 or later is needed):\n{done.stderr}")


def _pack(directory: Path, jar: Path) -> None:
    """A jar, since the JVM archives no classes of a class path with directories."""
    part = jar.with_suffix(".part")
    with ZipFile(part, "w") as packed:
        for path in sorted(directory.rglob("*.class")):
            packed.write(path, path.relative_to(directory))
    part.rename(jar)


def class_path(version: str = KAFKA_VERSION) -> str:
    """What `java -cp` takes: our classes, where there are some for this Kafka, and the jars in an order that stays."""
    own = [own_classes(version)] if own_sources(version) else []
    return os.pathsep.join(map(str, [*own, *sorted(jar_directory(version).glob("*.jar"))]))


def class_archive(version: str = KAFKA_VERSION) -> Path:
    """Where tests.support.kafka.class_archives puts a Kafka's loaded classes, for a start in half the time."""
    return BUILD / f"kafka-{version}.jsa"


def java_command(
    main_class: str, *args: str, version: str = KAFKA_VERSION, options: Sequence[str] = ("-Xmx512m",)
) -> list[str]:
    """The command line that runs a Java main class with a Kafka's jars."""
    quick = () if "-server" in options else (*QUICK, *archive_options(class_archive(version)))
    return [program("java"), *quick, *options, "-cp", class_path(version), main_class, *args]


def archive_options(archive: Path) -> tuple[str, ...]:
    """The flags of a JVM that uses an archive of classes; one that is missing or does not fit changes nothing."""
    if lists := os.environ.get(CLASS_LISTS):
        return (f"-XX:DumpLoadedClassList={lists}/%p.classes",)
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive.exists() else ()


def run_tool(
    main_class: str, *args: str, version: str = KAFKA_VERSION, stdin: str | None = None, timeout: float = 120
) -> ToolResult:
    """Run one of Kafka's tools, or a main class of ours, to its end; `main_class` is the full name."""
    done = subprocess.run(
        java_command(main_class, *args, version=version),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    return ToolResult(exit_code=done.returncode, out=done.stdout, err=done.stderr)


def main() -> None:
    """Gather and compile."""
    for version in sys.argv[1:] or [KAFKA_VERSION, KAFKA_44]:
        jar_directory(version)
    for version in SOURCES:
        own_classes(version)
    streams_jar()


if __name__ == "__main__":
    try:
        main()
    except JvmMissingError as error:
        sys.exit(f"jvm: {error}")
