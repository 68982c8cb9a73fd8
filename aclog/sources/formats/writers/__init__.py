"""Rules as files of other tools: what `aclog export` writes, and the readers beside these writers read back."""
