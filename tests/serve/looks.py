"""Ways to look at pictures and texts, as backbones of runs that are served."""

import numpy as np


def colours(pictures):
    return np.stack([np.asarray(p.resize((2, 2))).ravel() / 255 for p in pictures])


def shapes(pictures):
    grey = [p.convert("L").resize((6, 6)) for p in pictures]
    return np.stack([np.asarray(p).ravel() / 255 for p in grey])


def letters(texts):
    return np.array([[text.count(c) for c in "abcdefgh"] for text in texts]) + 0.5


def lengths(texts):
    return np.array([[len(text), text.count(" "), text.count("a")] for text in texts])
