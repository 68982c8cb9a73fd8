"""The tables of ARCHITECTURE.md that follow from the code: `python -m tests.docs.architecture` writes them.

The picture of the layers is import-linter's contract; a package's description is the first line of its docstring.
Where to begin reading is written by hand here, since only people know.
"""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
LAYERS = re.compile(r"(?<=## The packages\n\n```\n).*?(?=\n```)", re.DOTALL)
TABLE = re.compile(r"(?<=public names of `import aclog`\.\n\n).*?(?=\n\n## A node)", re.DOTALL)

BEGIN_AT = {
    "analysis": ("regions/region.py", "difference.py"),
    "authorizer": ("acl.py", "acls_image.py", "standard.py"),
    "authorizer/index": ("base.py", "acl_index.py", "overlay.py", "kafka_scan_order.py"),
    "cli": ("app.py",),
    "console": ("live_state.py",),
    "console/findings": ("item.py", "looked.py", "lookout.py"),
    "console/draft": ("draft_text.py", "effect.py"),
    "console/login": ("guard.py", "visibility.py", "password_way.py"),
    "console/login/oidc": ("oidc_way.py", "id_token.py"),
    "console/pages": ("page.py", "states.py", "views.py"),
    "console/pdp": ("app.py", "mapping.py", "decider.py"),
    "console/web": ("app.py", "rendering.py"),
    "credentials": ("scram.py", "tokens.py", "token_control.py"),
    "library": ("opening.py", "log.py", "image.py", "authorizer.py"),
    "metalog": ("records.py", "batches.py", "log.py"),
    "metalog/filelog": ("startup.py", "file_log.py", "mark.py"),
    "metalog/topiclog": ("takeover.py", "topic_log.py", "election.py"),
    "nodes": ("node.py",),
    "nodes/apis": ("request.py",),
    "nodes/broker": ("handlers.py", "forwarder.py"),
    "nodes/client": ("connection.py", "login.py"),
    "nodes/config": ("server_properties.py", "node_config.py"),
    "nodes/controller": ("controller_server.py",),
    "nodes/controller/apis": ("handlers.py", "fetch.py"),
    "nodes/controller/shared": ("topic_controller.py", "standby.py", "leadership_term.py"),
    "nodes/controller/write_path": ("quorum_controller.py",),
    "nodes/observer": ("quorum_log.py", "fetcher.py", "mirror.py"),
    "nodes/security": ("sasl_server.py", "tls.py"),
    "nodes/server": ("listeners.py", "dispatch.py", "admission.py"),
    "nodes/storage": ("format.py",),
    "nodes/telemetry": ("metrics.py", "http_endpoint.py"),
    "nodes/wire": ("api_versions.py", "messages.py"),
    "pipeline": ("authorize.py", "session.py"),
    "pipeline/accesses": ("ingest.py", "access_table.py"),
    "pipeline/history": ("intervals.py", "when.py"),
    "pipeline/source": ("data_source.py", "record_table.py"),
    "pipeline/usage": ("report.py",),
    "places": ("log_place.py",),
    "planning": ("planner.py", "ordering.py", "applying.py"),
    "planning/granting": ("asked.py", "grant.py", "revoke.py"),
    "planning/report": ("plan_document.py", "step_items.py", "rule_uses.py"),
    "planning/journal": ("entry.py", "journal.py"),
    "shell": ("tree.py", "engine.py"),
    "snapshots": ("image.py", "applier.py", "recovery.py"),
    "sources": ("choice.py", "paths.py"),
    "terminal": ("notices.py",),
    "usage": ("log_counter.py", "report.py"),
    "usage/accesses": ("access_input.py", "json_block.py"),
    "usage/arrow": ("acl_structs.py",),
    "usage/judging": ("counting.py",),
    "usage/index": ("usage_index.py", "run_adder.py"),
    "usage/decisions": ("bulk_authorizer.py", "interval_index.py"),
    "zkstore": ("acl_store.py", "store_follower.py"),
    "zkstore/authorizer": ("acl_authorizer.py",),
    "zkstore/migration": ("access_state.py", "store_plan.py"),
}
"""The packages of the table, and the modules of each to read first."""


def layers() -> str:
    """The picture: one row a layer of import-linter's contract, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [contract] = [contract for contract in contracts if contract.get("containers") == ["aclog"]]
    return "\n".join(f" {', '.join(layer.split(' | '))}" for layer in contract["layers"])


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
