"""The notebooks of docs/notebooks: run in this process, recorded by `python -m tests.docs.notebook`, shown as pages."""

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs/notebooks"


def notebooks() -> list[Path]:
    """Return the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def recorded(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells, run one after the other in the notebooks' folder."""
    names: dict[str, Any] = {}
    cells, count = [], 0
    with contextlib.chdir(FOLDER):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                outputs = list(_outputs("".join(cell["source"]), names, count))
                cell = {**cell, "execution_count": count, "outputs": outputs}  # noqa: PLW2901
            cells.append(cell)
    return {**notebook, "cells": cells}


def texts(notebook: dict[str, Any]) -> list[list[str]]:
    """Return what each cell prints and shows as text: what does not depend on how a library draws tables in HTML."""
    return [
        ["".join(output.get("text", output.get("data", {}).get("text/plain", []))) for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def page(notebook: dict[str, Any]) -> str:
    """Return a notebook as a page of the site."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell)) + "\n"


def _outputs(source: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """Run a cell as a notebook does: what it prints, and its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {"text/plain": output.get("text", [])})
        # A blank line would end a block of HTML.
        html = "\n".join(line for line in "".join(data.get("text/html", [])).splitlines() if line.strip())
        yield f'<div class="output">\n{html}\n</div>' if html else f"```text\n{''.join(data['text/plain'])}\n```"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for path in notebooks():
        made = recorded(json.loads(path.read_text("utf-8")))
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
        sys.stdout.write(f"{path.name}\n")
