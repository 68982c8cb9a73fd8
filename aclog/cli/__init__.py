"""The `aclog` command: the subcommand X is in X.py (`import` in import_.py), or in the package X.

Begin with `app.py` (the table of subcommands, one command line and its exit code) and `options.py`.
"""
