"""Completion in bash, zsh and fish: the scripts, and what answers them."""
