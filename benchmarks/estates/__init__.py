"""Decisions on estates of ten shapes, beside the real StandardAuthorizer: cold, asked again, audited, under change."""
