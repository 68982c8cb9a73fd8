"""The native core (the package aclog-native), if it is installed: what is done millions of times, in compiled code.

Every use of it has a form in Python beside it, which gives the same results.
"""

import os
from importlib import import_module
from typing import Any

NATIVE_VARIABLE = "ACLOG_NATIVE"
"""Set to 0, this environment variable turns the native core off."""


def _native() -> Any:
    if os.environ.get(NATIVE_VARIABLE) == "0":
        return None
    try:
        return import_module("aclog_native")
    except ImportError:
        return None


native: Any = _native()
"""The module aclog_native; None where it is not installed or turned off."""
