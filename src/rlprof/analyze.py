"""`python -m rlprof.analyze` is the same as `rlprof analyze`."""

import sys

from rlprof.cli.main import main

if __name__ == "__main__":
    main(["analyze", *sys.argv[1:]])
