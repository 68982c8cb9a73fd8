"""Access control of the console: logins, sessions, the guard of every request, and the rules that a viewer may see."""
