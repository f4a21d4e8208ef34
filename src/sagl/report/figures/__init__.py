"""The figures: data and optional axes in, axes out.

Every function draws on the given ``ax`` or on a new figure of its own, names its axes
and attaches words for people who cannot see it (:func:`sagl.report.saving.words`).
:func:`sagl.report.save` writes a figure as PNG, SVG or PDF. Nothing here uses pyplot,
and matplotlib's settings are as before when a figure is drawn.
"""

from sagl.report.figures.candidates import draw_candidates
from sagl.report.figures.cka import draw_cka
from sagl.report.figures.cluster_count import draw_cluster_count
from sagl.report.figures.clusters import draw_cluster_sizes, draw_confidence
from sagl.report.figures.confusion import draw_confusion
from sagl.report.figures.flow import draw_flow
from sagl.report.figures.graph import draw_graph
from sagl.report.figures.history import draw_losses, draw_sparsity
from sagl.report.figures.labelled_map import draw_map
from sagl.report.figures.methods import draw_accuracy, draw_training_times
from sagl.report.figures.sensitivity import draw_batch_sizes, draw_sensitivity
from sagl.report.figures.sweep import draw_sweep
from sagl.report.figures.tsne_levels import draw_tsne_levels

__all__ = [
    "draw_accuracy",
    "draw_batch_sizes",
    "draw_candidates",
    "draw_cka",
    "draw_cluster_count",
    "draw_cluster_sizes",
    "draw_confidence",
    "draw_confusion",
    "draw_flow",
    "draw_graph",
    "draw_losses",
    "draw_map",
    "draw_sensitivity",
    "draw_sparsity",
    "draw_sweep",
    "draw_training_times",
    "draw_tsne_levels",
]
