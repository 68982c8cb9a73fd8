"""What may be wrong with an installation, a connection or a log, and what to do: the checks of `aclog doctor`."""
