"""Who you are: SCRAM credentials and delegation tokens."""
