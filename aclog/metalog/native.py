"""The native core (the package aclog-native), if it is installed: what is done millions of times, in compiled code.

Every use of it has a form in Python beside it, which gives the same results.
"""

import os
from importlib import import_module
from typing import Any, Final

NATIVE_VARIABLE: Final = "ACLOG_NATIVE"
"""Set to 0, this environment variable turns the native core off."""

NATIVE_VERSION: Final = "0.3.0"
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
