"""The APIs of a controller, one module each."""
