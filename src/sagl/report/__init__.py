"""Something to look at: figures and where the points of a scatter go."""

from sagl.report.saving import Picture, picture, save

__all__ = ["Picture", "picture", "save"]
