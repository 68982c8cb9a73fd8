"""`aclog acls`: list, add and remove ACLs."""
