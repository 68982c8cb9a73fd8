"""All functions but those on files, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from attrs import evolve

from aclog.sources.formats.terraform.functions.addresses import ADDRESS_FUNCTIONS
from aclog.sources.formats.terraform.functions.collection_functions import COLLECTION_FUNCTIONS
from aclog.sources.formats.terraform.functions.encoding import ENCODING_FUNCTIONS
from aclog.sources.formats.terraform.functions.files import PATH_FUNCTIONS
from aclog.sources.formats.terraform.functions.formatting import FORMAT_FUNCTIONS
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.functions.numeric import NUMERIC_FUNCTIONS
from aclog.sources.formats.terraform.functions.regexes import REGEX_FUNCTIONS
from aclog.sources.formats.terraform.functions.set_functions import SET_FUNCTIONS
from aclog.sources.formats.terraform.functions.strings import STRING_FUNCTIONS
from aclog.sources.formats.terraform.functions.yaml_text import YAML_FUNCTIONS
from aclog.sources.formats.terraform.values.types import DYNAMIC, STRING
from aclog.sources.formats.terraform.values.value import Unknown, Value, boolean, is_sensitive

_AT_APPLY = ("bcrypt", "plantimestamp", "timestamp", "uuid")
"""Their results differ from run to run."""


def _at_apply(name: str) -> Function:
    return Function(rest=DYNAMIC, body=lambda *_: Value(STRING, Unknown(f"{name}(), which differs from run to run")))


_SENSITIVITY = {
    "sensitive": Function(
        parameters=(DYNAMIC,), body=lambda value: evolve(value, sensitive=True), nulls=True, unknowns=True
    ),
    "nonsensitive": Function(parameters=(DYNAMIC,), body=lambda value: value, nulls=True, unknowns=True),
    "issensitive": Function(
        parameters=(DYNAMIC,), body=lambda value: boolean(is_sensitive(value)), nulls=True, unknowns=True
    ),
}
"""What was sensitive stays so in messages, whatever nonsensitive() says."""

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        **ADDRESS_FUNCTIONS,
        **COLLECTION_FUNCTIONS,
        **ENCODING_FUNCTIONS,
        **FORMAT_FUNCTIONS,
        **NUMERIC_FUNCTIONS,
        **PATH_FUNCTIONS,
        **REGEX_FUNCTIONS,
        **SET_FUNCTIONS,
        **STRING_FUNCTIONS,
        **YAML_FUNCTIONS,
        **_SENSITIVITY,
        **{name: _at_apply(name) for name in _AT_APPLY},
    }
)
