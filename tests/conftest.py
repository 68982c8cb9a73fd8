"""What holds for every test: no deadlines, since a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("aclog", deadline=None, print_blob=True)
settings.load_profile("aclog")
