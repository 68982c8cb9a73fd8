"""`aclog log`: dump, verify and copy metadata logs."""
