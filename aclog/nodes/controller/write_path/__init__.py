"""The active controller: from a request to committed records."""
