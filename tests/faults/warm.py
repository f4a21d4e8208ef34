"""What commands need, imported once: each of hundreds is then forked, not started.

The server of Python's that forks the commands under test imports this.
"""

import sys
from importlib import import_module

LATER = (  # what commands import when they are called
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"),
    *("jinja2", "openTSNE", "optuna", "pyarrow.csv", "PIL.Image", "PIL.PngImagePlugin"),
    *("sagl.cli.main", "sagl.experiments.compare", "sagl.experiments.sweep"),
    *("sagl.report.page", "sagl.report.figures", "sagl.features.extraction"),
    *("sagl.features.readers", "sagl.features.store_tools", "torch.distributed"),
    "tests.faults.processes",
)
if sys.argv[0] == "-c":  # and not pytest, which looks for doctests everywhere
    for name in LATER:
        import_module(name)
