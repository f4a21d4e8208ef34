"""What people do with clusters: look, name, find outliers and copies, merge, split."""

from sagl.clusters.methods import ClusterMethods
from sagl.clusters.naming import About
from sagl.clusters.table import Cluster

__all__ = ["About", "Cluster", "ClusterMethods"]
