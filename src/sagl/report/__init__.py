"""What a run looks like: figures, and one page with an explorer of samples."""

from sagl.report.saving import Picture, picture, save

__all__ = ["Picture", "picture", "save"]
