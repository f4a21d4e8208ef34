__version__ = "0.2.0"
# Of what SAGL finds on the same data, and of what the methods that it is compared with
# find. Kept runs are known by them and not by the version: change one by hand whenever
# results change, so that runs of before are not taken for runs of today.
REVISION = "2026-11-19 a"
PEERS_REVISION = "0.1.0"
