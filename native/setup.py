"""Build one extension module against the stable ABI of CPython 3.11: the wheel serves every later version, too."""

from pathlib import Path

from setuptools import Extension, setup

_FLAGS = ["-std=c11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra"]

setup(
    ext_modules=[
        Extension(
            "aclog_native",
            sources=sorted(str(path) for path in Path("src").glob("*.c")),
            depends=sorted(str(path) for path in Path("src").glob("*.h")),
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            extra_compile_args=_FLAGS,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
