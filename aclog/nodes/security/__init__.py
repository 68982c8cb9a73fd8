"""Who is connected: SASL and TLS, without a socket where that can be."""
