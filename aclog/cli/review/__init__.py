"""`aclog review`: what a pull request gives, takes, breaks and brings."""
