"""Files as of a commit of a git repository, or as in its index: read by the git executable, without a checkout."""
