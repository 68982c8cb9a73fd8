"""The library that kills a process, or fills its disk, at a write: write_faults.c, compiled to be preloaded."""

import ctypes
import os
import subprocess
from pathlib import Path


def compiled(directory: Path) -> Path:
    """The library, made in this directory."""
    library = directory / "write_faults.so"
    source = Path(__file__).with_name("write_faults.c")
    subprocess.run(
        [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    return library


def fault_at(write: int, *, full: bool = False) -> ctypes.CDLL:
    """Arm the preloaded library: the fault comes at this write of this process, counted from 1."""
    shim = ctypes.CDLL(None)
    shim.fault_left.restype = ctypes.c_long
    shim.fault_at(ctypes.c_long(write), int(full))
    return shim
