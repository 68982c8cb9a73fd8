"""The tables of ARCHITECTURE.md that follow from the code: `python -m tests.docs.architecture` writes them.

The picture of the layers is import-linter's contract; a package's description is the first line of its docstring.
Where to begin reading is written by hand here, since only people know.
"""

import ast
import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
LAYERS = re.compile(r"(?<=## The packages\n\n```\n).*?(?=\n```)", re.DOTALL)
TABLE = re.compile(r"(?<=public names of `import aclog`\.\n\n).*?(?=\n\n## A node)", re.DOTALL)

BEGIN_AT = {
    "analysis": ("regions.py", "comparison.py"),
    "analysis/engine": ("exploration.py",),
    "analysis/lint": ("linting.py", "finding.py"),
    "analysis/review": ("review.py",),
    "analysis/rows": ("row.py", "folding.py"),
    "analysis/rule_tests": ("case.py", "expectations.py"),
    "authorizer": ("acl.py", "acls_image.py", "standard.py"),
    "authorizer/index": ("base.py", "acl_index.py", "scan_order.py"),
    "cli": ("app.py", "invocation.py"),
    "cli/flags": ("source.py", "common.py"),
    "cli/spark": ("command.py",),
    "cli/transfer": ("transfer.py",),
    "client": ("connection.py", "requests.py", "fetching.py"),
    "config": ("server_properties.py", "node_config.py"),
    "console": ("live.py", "connections.py"),
    "console/login": ("guard.py", "sessions.py"),
    "console/pages": ("page.py", "states.py", "views.py"),
    "console/pdp": ("app.py", "mapping.py", "deciding.py"),
    "console/web": ("app.py", "rendering.py"),
    "credentials": ("scram.py", "tokens.py"),
    "library": ("log.py", "image.py", "authorizer.py", "reports.py"),
    "metalog": ("records.py", "batches.py", "committed_log.py"),
    "metalog/filelog": ("file_log.py", "segments.py", "committed_mark.py"),
    "metalog/topiclog": ("topic_log.py", "reader.py"),
    "ops": ("policies.py", "lint.py", "review.py"),
    "pipeline": ("authorize.py", "session.py"),
    "pipeline/accesses": ("append.py", "tables.py"),
    "pipeline/history": ("intervals.py", "when.py"),
    "pipeline/source": ("data_source.py", "rows.py"),
    "planning": ("planner.py", "plan.py", "applying.py"),
    "protocol": ("headers.py", "messages.py"),
    "security": ("sasl.py", "tls.py"),
    "server": ("node.py",),
    "server/apis": ("acls.py",),
    "server/broker": ("lifecycle.py", "apis.py"),
    "server/controller": ("quorum_controller.py", "controller_server.py", "topic_controller.py"),
    "server/network": ("listeners.py", "dispatch.py", "admission.py"),
    "shell": ("tree.py", "session.py"),
    "snapshots": ("image.py", "applier.py", "publisher.py"),
    "sources": ("choice.py", "logs.py", "live.py"),
    "sources/formats": ("reading.py", "files.py"),
    "sources/formats/terraform": ("configuration.py", "evaluation.py"),
    "targets": ("opening.py", "log.py", "cluster.py"),
    "terminal": ("output.py", "tables.py"),
    "usage": ("counting.py", "report.py"),
    "usage/accesses": ("access_log.py", "lines.py"),
    "usage/decisions": ("bulk_authorizer.py", "intervals.py"),
    "usage/index": ("usage_index.py", "used.py"),
    "zookeeper": ("acl_store.py", "authorizer.py", "migration.py"),
}
"""The packages of the table, and the modules of each to read first."""


def layers() -> str:
    """The picture: one row a layer of import-linter's contract, the highest first."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter", "utf-8")
    arrows = contracts["importlinter:contract:arrows"]["layers"].split("\n")
    return "\n".join(f" {', '.join(layer.split(' | '))}" for layer in arrows if layer)


def table() -> str:
    """One row a package."""
    rows = ["| package | content | begin with |", "|---|---|---|"]
    for package, modules in BEGIN_AT.items():
        text = ast.get_docstring(ast.parse((ROOT / "aclog" / package / "__init__.py").read_text("utf-8")))
        assert text is not None, f"aclog/{package} has no docstring"
        rows.append(f"| `{package}` | {text.splitlines()[0]} | {', '.join(f'`{module}`' for module in modules)} |")
    return "\n".join(rows)


def written(page: str) -> str:
    """The page with both as the code has them now."""
    return TABLE.sub(lambda _: table(), LAYERS.sub(lambda _: layers(), page))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
