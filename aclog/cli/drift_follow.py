"""Checks a target repeatedly, and prints each rule that drifts, and each that is fixed."""

from pathlib import Path

from attrs import field

from aclog.cli.drift_report import drift_row, drift_text, look
from aclog.cli.flags.commands import DriftFlags
from aclog.cli.flags.common import FollowerFlags, Output
from aclog.cli.flags.plans import WantFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.follow import FollowerStatus, serving
from aclog.cli.plan import wanted_of
from aclog.cli.signals import Stop, on_signals
from aclog.metalog.errors import ConfigError, LogError, MetadataError, printable
from aclog.metalog.values import define
from aclog.ops.plan import read_wanted_rules
from aclog.planning.planner import Drift
from aclog.sources.acl_lines import STDIN
from aclog.targets.applies import time_now
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.output import emit, note, say, warn


def follow_drift(
    target: TargetFlags, want: WantFlags, flags: DriftFlags, follower: FollowerFlags, output: Output
) -> None:
    """Look until SIGINT or SIGTERM.

    Raises:
        ConfigError: flags that do not go together, no format for a stream, or desired rules are not in files;
            --http cannot listen.
        MetadataError, OSError: the first look fails, or none has succeeded for too long.

    """
    if output.form not in (OutputFormat.TEXT, OutputFormat.JSONL):
        raise ConfigError(f"--follow with --format {output.form}: expected text or jsonl")
    seconds = flags.seconds(is_log=target.log is not None)
    files = _WantedFiles(want)
    files.check()
    watcher = _Watcher(target=target, files=files, flags=flags, form=output.form)
    stop, status, patience = Stop(), FollowerStatus(), follower.patience()
    status.gauge("aclog_drift", "Rules that drift, at the newest look.").set_function(lambda: len(watcher.drifts))
    with serving(follower.address(), status), on_signals(stop.set):
        watcher.look()
        status.succeeded()
        while not stop.wait(seconds):
            try:
                watcher.look()
            except (MetadataError, OSError) as error:
                status.failed(str(error))
                watcher.tell_trouble(str(error))
                if patience is not None and status.age > patience:
                    raise LogError(f"no look has succeeded for {status.age:.0f} s: gave up: {error}") from error
            else:
                status.succeeded()
                watcher.trouble = None


@define(eq=False)
class _WantedFiles:
    """The desired rules, read again for each check: files refer to others, so only a full read detects a change."""

    flags: WantFlags
    _notes: list[str] = field(factory=list, init=False)

    def check(self) -> None:
        """Raise ConfigError: stdin or a pipe, which cannot be read again."""
        named = {"--want": self.flags.want, "--topics": self.flags.topics_file}
        for flag, path in named.items():
            if path == STDIN or (path is not None and _is_node(Path(path))):
                raise ConfigError(f"{flag} {path}: expected files with --follow, which reads them again and again")

    def rules(self) -> frozenset[bytes]:
        """Return the rules, and print what was read if that is new. Raises as read_wanted_rules."""
        notes = list[str]()
        rules = read_wanted_rules(wanted_of(self.flags), notes.append).rules
        if notes != self._notes:
            for text in notes:
                note(text)
        self._notes = notes
        return rules


@define(eq=False, kw_only=True)
class _Watcher:
    """Knows what drifted at the newest look."""

    target: TargetFlags
    files: _WantedFiles
    flags: DriftFlags
    form: OutputFormat
    drifts: dict[bytes, Drift] = field(factory=dict, init=False)
    trouble: str | None = field(default=None, init=False)
    """Why the newest check failed, once it is printed."""

    def look(self) -> None:
        """Check once, and print what is new. Raises as aclog.cli.drift_report.look."""
        drifts = {each.content: each for each in look(self.target, self.files.rules(), self.flags).drift}
        for content, drift in drifts.items():
            previous = self.drifts.get(content)
            if previous is None or previous.kind is not drift.kind:
                self._print("DRIFTED", drift)
        for content, drift in self.drifts.items():
            if content not in drifts:
                self._print("MENDED", drift)
        self.drifts = drifts

    def tell_trouble(self, why: str) -> None:
        """Warn that a check failed, once for each reason."""
        if why != self.trouble:
            warn(f"{why}: drift is unknown until a check succeeds")
            self.trouble = why

    def _print(self, event: str, drift: Drift) -> None:
        time = time_now()
        if self.form is OutputFormat.JSONL:
            emit(json_text({"time": time, "event": event, **drift_row(drift)}), flush=True)
        else:
            say(printable(f"{time}  {event}  {drift_text(drift)}"), flush=True)


def _is_node(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
