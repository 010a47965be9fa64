"""Self-contained HTML reports of plans, releases and rehearsals. Public: nothing here reads records."""
