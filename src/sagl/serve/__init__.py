"""The HTTP service: a run answers as ``predict`` does. Needs the extra ``serve``."""
