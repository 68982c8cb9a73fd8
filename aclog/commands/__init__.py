"""The sub-commands, one module each: what can be typed, and which part of aclog does it."""
