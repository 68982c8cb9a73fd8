"""The judge: what HashiCorp's parser and values make of expressions and repositories (tests/go/terraform)."""

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

_SOURCE = Path(__file__).parents[2] / "go" / "terraform"


def build(directory: Path) -> Path:
    """Build the judge, which takes Go and its modules; return the program."""
    program = directory / "oracle"
    environment = {**os.environ, "GOFLAGS": "-mod=readonly"}
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=_SOURCE, env=environment, check=True)
    return program


def ask(program: Path, *arguments: str, lines: Iterable[str] = ()) -> list[str]:
    """Run the judge; return its answers, each a line of JSON."""
    text = "".join(f"{line}\n" for line in lines)
    run = subprocess.run([str(program), *arguments], input=text.encode(), capture_output=True, check=True)
    return run.stdout.decode(errors="replace").splitlines()


def values_of(program: Path, expressions: Sequence[str]) -> list[str]:
    """Return what each expression means, as lines of JSON: type and value, or that there is none."""
    return ask(program, "expressions", lines=map(json.dumps, expressions))


def rules_of(program: Path, directory: Path) -> dict[str, object]:
    """Return the rules of a directory, or the error."""
    (answer,) = ask(program, "rules", str(directory))
    verdict: dict[str, object] = json.loads(answer)
    return verdict
