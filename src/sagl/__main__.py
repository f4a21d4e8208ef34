"""``python -m sagl`` is the command line."""

from sagl.cli.main import run

if __name__ == "__main__":
    run()
