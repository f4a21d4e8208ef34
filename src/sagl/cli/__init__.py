"""The command line: parses and calls, holds no logic of its own."""
