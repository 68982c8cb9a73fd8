"""Command-line flags that several commands share: attrs classes whose fields are annotated options.

Begin with `common.py`; the flags of one command are in `commands.py`.
"""
