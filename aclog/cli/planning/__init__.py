"""What the commands share that make plans and apply them."""
