"""The classes and functions behind the public names of `import aclog`: logs, images, authorizers (docs/library.md).

Begin with `log.py`, `image.py`, `authorizer.py`, and `reports.py` for what commands do.
"""
