"""The native core (the package aclog-native), if it is installed: what is done millions of times, in compiled code.

Every use of it has a form in Python beside it, which gives the same results. Also numpy and regular expressions, which
are loaded when they are first used.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, AnyStr, Final, TypeVar, cast

NATIVE_VARIABLE: Final = "ACLOG_NATIVE"
"""Set to 0, this environment variable turns the native core off."""

NATIVE_VERSION: Final = "0.4.0"
"""The version of aclog-native that is used; another one may do other things under the same names."""


def load_native(environment: "os._Environ[str] | dict[str, str]", name: str = "aclog_native") -> tuple[Any, str]:
    """Return the module, or None, and a message: its version, or the reason why it is not used."""
    if environment.get(NATIVE_VARIABLE) == "0":
        return None, f"no native core: {NATIVE_VARIABLE} is 0"
    try:
        module = import_module(name)
    except ModuleNotFoundError:
        return None, "no native core: aclog-native is not installed"
    except ImportError as e:
        return None, f"no native core: aclog-native cannot be loaded ({e})"
    if module.VERSION != NATIVE_VERSION:
        return None, f"no native core: aclog-native {module.VERSION} is installed, and {NATIVE_VERSION} is needed"
    return module, f"native core {module.VERSION}"


native: Any
"""The module aclog_native; None where it is not installed, turned off or another version."""
native, native_text = load_native(os.environ)


# Values of frozen classes, of which a busy node makes ten for each request: an assignment of each field through
# object.__setattr__, as attrs does it for them, is most of what they cost.


_T = TypeVar("_T")


def maker(made: Callable[..., _T], *names: str) -> Callable[..., _T]:
    """Return a function that makes an instance of a class with slots, given the values of all slots in this order.

    Nothing is checked, and no code of the class runs: neither converters nor `__attrs_post_init__`.
    """
    if native is not None:
        return native.Maker(made, names).make  # type: ignore[no-any-return]
    new = cast("Callable[[object], _T]", object.__new__)
    setters = tuple(getattr(made, name).__set__ for name in names)

    def make(*values: object) -> _T:
        instance = new(made)
        for set_, value in zip(setters, values, strict=True):
            set_(instance, value)
        return instance

    return make


# What is loaded when it is first used. numpy takes as much CPU as the rest of a command that decides about one name,
# which needs no array, and the regular expressions of all modules take as much as ten modules.


class _Deferred:
    """Has the attributes of what `load` returns, which is called when one of them is first read."""

    def __init__(self, load: Callable[[], object]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._load(), name)
        setattr(self, name, value)  # the next read calls nothing
        return value


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that is compiled when it is first used."""
    return cast("re.Pattern[AnyStr]", _Deferred(partial(re.compile, text, flags)))


if TYPE_CHECKING:
    import numpy  # noqa: ICN001 - an alias of an import is not exported

    np = numpy
else:
    # Modules that use it evaluate no annotations: these would load it.
    np = _Deferred(partial(import_module, "numpy"))
