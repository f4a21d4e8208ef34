"""Saved runs that somebody has changed, with checksums that are right all the same."""

import json

from sagl.run import MORE_PARTS, PARTS
from sagl.schema import checksum
from sagl.storage import sha256


def change_config(run, change=lambda config: None, *, sign=True):
    """Edit a configuration; with ``sign`` so that its checksum is right again."""
    config = json.loads((run / "config.json").read_text())
    change(config)
    if sign and "checksum" in config:
        del config["checksum"]
        config["checksum"] = checksum(config)
    (run / "config.json").write_text(json.dumps(config))


def enter_parts(run):
    """Have a configuration know the parts as they are now."""
    there = [name for name in (*PARTS, *MORE_PARTS) if (run / name).is_file()]
    sums = {name: sha256(run / name) for name in there}
    change_config(run, lambda config: config.update(sha256=sums))
