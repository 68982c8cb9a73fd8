"""The write path of the active controller: from a request to committed records."""
