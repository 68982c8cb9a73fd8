"""What commands do, as functions on values: no flags, no terminal, no printing of answers."""
