"""``python -m ldpspatial``: the same as ``ldpspatial``."""

from ldpspatial.cli.main import main

if __name__ == "__main__":
    main(prog_name="ldpspatial")
