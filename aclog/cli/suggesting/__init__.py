"""Suggestions of rules, as `aclog suggest` and `aclog spark suggest` make and print them."""
