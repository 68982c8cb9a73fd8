"""What `aclog grant` and `aclog revoke` share."""
