"""Ready-made experiments."""
