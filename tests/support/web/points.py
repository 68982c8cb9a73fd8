"""Decision points on states that a test holds in its hands."""

import threading
from pathlib import Path
from typing import Any

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.console.http import Hosts
from aclog.console.live import LiveState
from aclog.console.pdp.app import DecisionPoint, Measures, Tokens
from aclog.console.pdp.authzen import AuthZen
from aclog.console.pdp.deciding import Deciders
from aclog.console.pdp.mapping import Mapped, default_mapping, read_mapping
from aclog.console.pdp.opa import Audit, DecisionLog
from aclog.console.shared import LineFile
from aclog.metalog.errors import DecodeError, LogError
from aclog.snapshots.image import Image, StateSource
from aclog.sources.acl_lines import read_acls

ASSETS = Path(__file__).parents[3] / "docs" / "assets"


@define(eq=False)
class HeldSource:
    """A state source whose state a test sets; None fails."""

    current: Image | None
    name: str = "held"
    log: None = None
    asked_in: list[threading.Thread] = field(factory=list)
    """The threads that asked for states of the past."""
    trouble: str | None = None
    """Why it cannot be read now, or at a moment."""
    past: Image | None = None
    """The state at each moment but 0; None fails."""

    def image(self) -> Image:
        if self.trouble is not None:
            raise DecodeError(self.trouble)
        if self.current is None:
            raise LogError("gone")
        return self.current

    def image_at(self, moment: Any) -> Image:
        self.asked_in.append(threading.current_thread())
        if self.trouble is not None:
            raise DecodeError(self.trouble)
        if moment != 0 and self.past is None:
            raise LogError("no such state")
        return self.past if moment != 0 and self.past is not None else Image.EMPTY

    def freshness(self) -> None:
        return None

    def close(self) -> None:
        """Nothing is open."""


def image_of(*acls: StandardAcl) -> Image:
    return Image(acls=AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls))


def point_of(
    source: HeldSource | StateSource,
    mapping: Mapped | None = None,
    *,
    settings: Settings | None = None,
    tokens: Tokens | None = None,
    audit: Path | None = None,
    decision_log: Path | None = None,
    topics: tuple[str, ...] = (),
    hosts: Hosts | None = None,
) -> DecisionPoint:
    """A decision point that has read its source once; `look` reads it again."""
    live = LiveState(source=source, seconds=60, tell=lambda why: None)
    live._look()
    deciders = Deciders(live=live, settings=settings or Settings(), mapping=mapping or default_mapping(), max_age=60.0)
    return DecisionPoint(
        authzen=AuthZen(state=deciders.at, existing=lambda: {2: topics}),
        deciders=deciders,
        base_url="http://127.0.0.1:1",
        tokens=tokens,
        audit=None if audit is None else Audit(LineFile(audit)),
        decision_log=None if decision_log is None else DecisionLog(file=LineFile(decision_log), version="1"),
        measures=Measures(),
        tell=lambda why: None,
        hosts=hosts or Hosts(None),
    )


def look(point: DecisionPoint) -> None:
    """Let it read its source again."""
    point.deciders.live._look()


def certified() -> DecisionPoint:
    """The decision point of the certification's fixture."""
    rules = [rule.acl for rule in read_acls(str(ASSETS / "authzen-rules.jsonl"))]
    return point_of(HeldSource(image_of(*rules)), read_mapping(ASSETS / "authzen-mapping.yaml"))
