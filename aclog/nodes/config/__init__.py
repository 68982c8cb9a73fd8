"""What a server.properties says, as values."""
