"""Experiments: one way to run many fits, and tables of what is to be run."""

__all__ = ["compare", "digits", "fit", "reproduce", "study", "sweep"]
