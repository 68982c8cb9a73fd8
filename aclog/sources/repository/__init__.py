"""The settings of a repository of rules: aclog.toml, for the commands that check a pull request."""
