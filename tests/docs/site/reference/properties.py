"""The page of a node's properties: each key that the code reads, and where docs/configuration.md describes it."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from attrs import frozen

from aclog.authorizer.standard import AUTHORIZER_CLASS_NAME_CONFIG as AUTHORIZER
from aclog.config.node_settings import CLIENT_PREFIX
from aclog.config.security import CHECKED_KEYS
from aclog.config.server_properties import CLIENT_KEYS, OWN_KEYS, PER_LISTENER_KEYS, USED_KEYS
from tests.docs.site.places import ROOT, slug
from tests.docs.site.reference.tables import table

_INTRODUCTION = """The keys of server.properties that a node reads. What they mean is in
[configuration](../configuration.md), at the place that the last column names. Kafka's other keys are noted as unused
when a node starts; unknown ones are warned of, and refused with `--strict`. "Also for one listener":
`listener.name.<listener>.<key>` takes precedence.
"""
_PAGE = ROOT / "docs/configuration.md"
_SETTINGS = (
    "aclog/config/node_config.py",
    "aclog/credentials/tokens.py",
    "aclog/metalog/topiclog/settings.py",
)


@frozen(kw_only=True)
class Property:
    """A key of server.properties: whose it is, what is special about it, and its default if the code states it."""

    name: str
    kind: str
    default: str


def node_properties() -> list[Property]:
    """Return every key that a node reads or checks, by name."""
    defaults = dict(_defaults())
    found = {
        **dict.fromkeys(CHECKED_KEYS - USED_KEYS, "has to be as Kafka's default, or is refused"),
        AUTHORIZER: "",
        **{key: "also for one listener" if key in PER_LISTENER_KEYS else "" for key in USED_KEYS},
        **dict.fromkeys(OWN_KEYS, "aclog's own"),
        **{CLIENT_PREFIX + key: "aclog's own: of the client of the log's topic" for key in CLIENT_KEYS},
    }
    return [Property(name=key, kind=kind, default=defaults.get(key, "")) for key, kind in sorted(found.items())]


def properties_page() -> str:
    """Return the page."""
    places = described_at()
    rows = [
        (f"`{each.name}`", f"`{each.default}`" if each.default else "", each.kind, _place(each.name, places))
        for each in node_properties()
    ]
    return "\n".join(
        [
            "# Properties\n",
            _INTRODUCTION,
            table(("key", "default", "", "described at"), rows),
        ]
    )


def described_at() -> dict[str, str]:
    """Return a link to where docs/configuration.md first writes out each key: a heading, and the paragraph's title."""
    places: dict[str, str] = {}
    heading = title = ""
    for line in _PAGE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            heading, title = line.lstrip("# "), ""
        elif found := re.match(r"\*\*`?([^*`]+?)[.`]*\*\*", line):
            title = f": {found[1]}"
        for key in re.findall(r"`([a-z][\w.<>-]*)`", line):
            places.setdefault(key, f"[{heading}{title}](../configuration.md#{slug(heading)})")
    return places


def _place(key: str, places: dict[str, str]) -> str:
    base = f"{CLIENT_PREFIX}<key>" if key.startswith(CLIENT_PREFIX) else key
    return places.get(base, "")


def _defaults() -> Iterator[tuple[str, str]]:
    """Yield the defaults of fields whose docstrings name the key, such as `\"\"\"max.connections\"\"\"`."""
    for path in _SETTINGS:
        for owner in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
            body = owner.body if isinstance(owner, ast.ClassDef) else []
            for settings, text in pairwise(body):
                if isinstance(settings, ast.AnnAssign) and settings.value is not None and isinstance(text, ast.Expr):
                    key = re.match(r"[a-z]+(\.[a-z]+)+", str(getattr(text.value, "value", "")))
                    if key and not isinstance(settings.value, ast.Call) and _same_unit(key[0], settings.target):
                        yield key[0], _number(settings.value)


def _same_unit(key: str, field: ast.expr) -> bool:
    return not key.endswith(".ms") or ast.unparse(field).endswith("_ms")


def _number(value: ast.expr) -> str:
    result = eval(compile(ast.Expression(value), "", "eval"), {})
    if result in (None, ()):
        return ""
    return str(result).lower() if isinstance(result, bool) else str(result)
