"""What is wrong with the rules: looked for in a thread of its own, again and again, and kept for pages to show."""
