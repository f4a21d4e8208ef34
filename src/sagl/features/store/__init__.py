"""The feature store: features of many samples through several models, on disk."""

from sagl.features.store.adding import write_view
from sagl.features.store.exporting import export
from sagl.features.store.feature_store import FeatureStore, Join, Joined, OverlapWarning
from sagl.features.store.manifest import is_store
from sagl.features.store.merging import merge
from sagl.features.store.sample_files import read_skipped
from sagl.features.store.sharded_array import ShardedArray
from sagl.features.store.verifying import verify

__all__ = [
    "FeatureStore",
    "Join",
    "Joined",
    "OverlapWarning",
    "ShardedArray",
    "export",
    "is_store",
    "merge",
    "read_skipped",
    "verify",
    "write_view",
]
