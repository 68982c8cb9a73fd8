"""What a plan says: its effect, whose rules it touches, and its steps with what each delete takes away."""
