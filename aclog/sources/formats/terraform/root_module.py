"""Root modules: their variables' values come from files."""

import posixpath

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.terraform.evaluation import evaluate
from aclog.sources.formats.terraform.functions.files import ModuleFiles, file_functions
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.functions.table import FUNCTIONS
from aclog.sources.formats.terraform.hcl.bodies import read_body, read_template
from aclog.sources.formats.terraform.hcl.json_bodies import read_json_values
from aclog.sources.formats.terraform.hcl.syntax import Attribute
from aclog.sources.formats.terraform.loading import Modules
from aclog.sources.formats.terraform.module import Module
from aclog.sources.formats.terraform.progress import Progress
from aclog.sources.formats.terraform.scope import Budget, NoNames, Scope
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.types import DYNAMIC, MAPPINGS, STRING
from aclog.sources.formats.terraform.values.value import Value


def root_module(modules: Modules, directory: str) -> Module:
    """Return the root module in a directory, with the values that its files give its variables.

    Raises:
        ConfigError: a file is wrong, with the line; OSError: one cannot be read.

    """
    files = ModuleFiles(modules.context.tree, directory)
    functions = {**FUNCTIONS, **file_functions(files)}
    functions["templatefile"] = _templatefile(files, dict(functions), modules.budget)
    return Module(
        modules=modules,
        source=modules.source(directory),
        root=directory,
        functions=functions,
        progress=Progress(modules.budget),
        given=_given(modules.context, directory),
    )


def _given(context: ReadContext, directory: str) -> dict[str, tuple[Attribute, Scope]]:
    """Return the values of variables, in Terraform's order of precedence: later files win."""
    names = context.tree.entries(directory)
    automatic = sorted(name for name in names if name.endswith((".auto.tfvars", ".auto.tfvars.json")))
    given: dict[str, tuple[Attribute, Scope]] = {}
    for name in ("terraform.tfvars", "terraform.tfvars.json", *automatic):
        if name in names:
            file = SourceFile(context.tree, posixpath.join(directory, name))
            scope = Scope(file.name, NoNames(), {})
            given.update({key: (attribute, scope) for key, attribute in _values(file).items()})
    return given


def _values(file: SourceFile) -> dict[str, Attribute]:
    if file.path.endswith(".json"):
        return read_json_values(file.content, file.name)
    body = read_body(file.content, file.name)
    for block in body.blocks:
        raise ConfigError(f"{block.file}:{block.line}: {block.type}: a file of variables holds no blocks")
    return dict(body.attributes)


def _templatefile(files: ModuleFiles, functions: dict[str, Function], budget: Budget) -> Function:
    def _render(path: Value, names: Value) -> Value:
        if names.type.kind not in MAPPINGS:
            raise ValueFault("the second argument must be a map or an object")
        text, shown = files.text(path.text), files.tree.display(files.path(path.text))
        scope = Scope(shown, NoNames(), functions, names.entries, budget)
        return evaluate(read_template(text, shown), scope)

    return Function(parameters=(STRING, DYNAMIC), body=_render, structural=True)
