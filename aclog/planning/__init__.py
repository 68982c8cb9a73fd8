"""Planning: plans of changes, what a source of rules owns, and how a plan is applied."""
