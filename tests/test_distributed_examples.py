"""The examples for clusters: read, and run as far as one machine allows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from torch.distributed.run import get_args_parser

import sagl
from sagl.cli.main import app

ROOT = Path(__file__).parents[1]
SLURM = ROOT / "examples" / "slurm" / "sagl.sbatch"
KUBERNETES = ROOT / "examples" / "kubernetes" / "sagl.yaml"
HERE = "localhost"


def accepted(arguments):
    """What torchrun and sagl make of a command line; neither runs anything."""
    launch = get_args_parser().parse_args(arguments)
    assert launch.module
    assert launch.training_script == "sagl"
    name, *options = launch.training_script_args
    command = typer.main.get_command(app).commands[name]
    context = command.make_context(name, list(options))
    return launch, context.params


def test_slurm(tmp_path):
    """With one machine of its own and two processes, the script runs as it is."""
    stubs = {"scontrol": f"echo {HERE}; echo other", "srun": 'exec "$@"'}
    for name, line in stubs.items():  # what only a cluster has
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    text = SLURM.read_text(encoding="utf-8")
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", text, re.MULTILINE))
    assert asked["ntasks-per-node"] == "1", "torchrun starts the others"
    assert int(asked["nodes"]) > 1
    done = subprocess.run(
        ["bash", str(SLURM), "--version"],
        env={
            **os.environ,
            "PATH": os.pathsep.join(
                [str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "PYTHONPATH": str(Path(sagl.__file__).parents[1]),
            **{"SLURM_NNODES": "1", "SLURM_JOB_ID": "7", "SAGL_PROCESSES": "2"},
            **{"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_CPUS_PER_TASK": "1"},
        },
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [f"sagl {sagl.__version__}"] * 2 + [""]
    shown = re.search(r"sagl.sbatch (fit .*?)\n#\n", text, re.DOTALL)
    words = re.sub(r"[\\\n#]", " ", shown[1]).split()
    assert accepted(["-m", "sagl", *words])[1]["clusters"] == "100"


def test_kubernetes():
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8"))
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["torchrun"]
    launch, fit = accepted(container["args"])
    assert fit["view"] == ["a=/data/a.npy", "b=/data/b.npy"]
    assert int(launch.nnodes) == spec["completions"] == spec["parallelism"]
    # The first pod of an indexed job is JOB-0, in the domain of the service.
    host, port = launch.rdzv_endpoint.split(":")
    name, domain = job["metadata"]["name"], service["metadata"]["name"]
    assert host == f"{name}-0.{domain}"
    assert pod["subdomain"] == domain
    assert int(port) == service["spec"]["ports"][0]["port"]
    labels = spec["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    gpus = container["resources"]["limits"]["nvidia.com/gpu"]
    assert launch.nproc_per_node == gpus
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
