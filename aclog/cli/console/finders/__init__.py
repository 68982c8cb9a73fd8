"""What looks for findings for `aclog console`: each as its own command does."""
