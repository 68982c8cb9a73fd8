"""How the commands that answer questions grow with the number of rules: counted, on ten kinds of estates."""
