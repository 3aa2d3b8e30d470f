"""`python -m rlprof`: the command line."""

from rlprof.cli.main import main

if __name__ == "__main__":
    main()
