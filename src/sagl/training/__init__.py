"""Training: batches, the loop, callbacks, checkpoints."""

from sagl.training.callbacks import Callback, ProgressBar, StopWhenStable
from sagl.training.checkpoint import Checkpointer
from sagl.training.trainer import Plan, Trainer

__all__ = [
    "Callback",
    "Checkpointer",
    "Plan",
    "ProgressBar",
    "StopWhenStable",
    "Trainer",
]
