"""The page of metrics: what a node serves, from its registry, and what commands serve that follow a cluster."""

import ast
import re
from collections.abc import Iterator
from itertools import groupby

from attrs import frozen

from aclog.cli.test_follow import Color
from aclog.server.telemetry import Metrics
from tests.docs.site.places import ROOT
from tests.docs.site.reference.tables import plain, table

_MAKERS = {"Gauge": "gauge", "gauge": "gauge", "Counter": "counter", "Histogram": "histogram"}


@frozen(kw_only=True)
class Metric:
    """A metric by the name under which it is scraped."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str
    by: str
    """Who serves it."""


def node_metrics() -> list[Metric]:
    """Return the metrics of a node, as its registry has them; without those of its process."""
    metrics = Metrics(process=False)
    metrics.watch_acl_count(lambda: 0)
    registry = metrics.registry
    found = []
    for each in {id(each): each for each in registry._names_to_collectors.values()}.values():
        [family] = each.describe()
        labels = tuple(getattr(each, "_labelnames", ())) or ("outcome",) * (each is metrics.decisions)
        suffix = "_total" if family.type == "counter" else ""
        found.append(
            Metric(name=family.name + suffix, kind=family.type, labels=labels, text=family.documentation, by="serve")
        )
    return sorted(found, key=lambda metric: metric.name)


def follower_metrics() -> list[Metric]:
    """Return the metrics that the sources of commands make: with `--http`, besides those of their process."""
    found = [
        metric
        for path in sorted((ROOT / "aclog/cli").rglob("*.py"))
        if "aclog_" in (source := path.read_text("utf-8"))
        for metric in _made(ast.parse(source), _command(path.relative_to(ROOT / "aclog/cli").parts))
    ]
    return sorted(found, key=lambda metric: (metric.by, metric.name))


def metrics_page() -> str:
    """Return the page."""
    parts = [
        "# Metrics\n",
        "At `/metrics`. [Monitoring nodes](../operations.md#monitoring-nodes) says what to alert on.\n",
        "## A node\n",
        "`aclog serve` with `aclog.http.listener`; besides these the process's memory, files and CPU time.\n",
        _table(node_metrics()),
    ]
    for by, metrics in groupby(follower_metrics(), key=lambda metric: metric.by):
        parts += [f"## {by}\n", _table(metrics)]
    return "\n".join(parts)


def _table(metrics: object) -> str:
    head = ("metric", "kind", "labels", "meaning")
    return table(
        head, [(f"`{m.name}`", m.kind, ", ".join(f"`{each}`" for each in m.labels), plain(m.text)) for m in metrics]
    )


def _command(parts: tuple[str, ...]) -> str:
    names = {
        "diff": "aclog diff --follow",
        "test": "aclog test --follow",
        "sync": "aclog sync",
        "mirror": "aclog mirror",
    }
    return names.get(parts[0], "Commands that follow, with `--http`")


def _made(tree: ast.Module, by: str) -> Iterator[Metric]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and (maker := _maker(node)):
            name, *rest = (_text(argument) for argument in node.args)
            if name and name.startswith("aclog_") and rest and rest[0]:
                labels = _labels(node.args[2]) if len(node.args) > 2 else ()
                yield Metric(name=_scraped(name, maker), kind=maker, labels=labels, text=rest[0], by=by)
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = _text(key)
                if (
                    name
                    and name.startswith("aclog_")
                    and isinstance(value, ast.Tuple)
                    and (text := _text(value.elts[0]))
                ):
                    yield Metric(name=name, kind="gauge", labels=(), text=text, by=by)
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.JoinedStr):
            yield from _of_colors(node.elts, by)


def _of_colors(pair: list[ast.expr], by: str) -> Iterator[Metric]:
    # Names that are made of the colors of tests: f"aclog_rule_tests_{color.value.lower()}".
    for color in Color:
        name, text = (re.sub(r"\{[^}]*\}", color.value.lower(), ast.unparse(part)[2:-1]) for part in pair)
        yield Metric(name=name, kind="gauge", labels=(), text=text, by=by)


def _maker(call: ast.Call) -> str | None:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return _MAKERS.get(name)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _labels(node: ast.expr) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, node.elts))) if isinstance(node, (ast.List, ast.Tuple)) else ()


def _scraped(name: str, kind: str) -> str:
    return f"{name}_total" if kind == "counter" and not name.endswith("_total") else name
