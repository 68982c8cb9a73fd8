"""What a command line leaves out, from a context: each key stands for a flag that need not be typed.

It is done where typer parses, for every command that has a flag of a state source, so that no command can forget it.
A flag that names a source wins, and then nothing of the context is used.
"""
