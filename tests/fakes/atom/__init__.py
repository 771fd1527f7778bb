"""Stand-in for the ATOM package: only its server's command line, for tests."""
