"""Command-line flags that several commands share: attrs classes whose fields are annotated options.

Begin with `source.py` and `common.py` (`with_flags`).
"""
