"""`aclog pdp` beside other decision points, asked the same questions in one run."""
