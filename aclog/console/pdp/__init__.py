"""The decision point: AuthZEN's Authorization API 1.0, OPA's data API and Envoy's ext_authz, on one authorizer.

Begin with `app.py`, `mapping.py`, `deciding.py` and `workers.py`.
"""
