"""`python -m marrow`: the command line."""

from marrow.cli import main

if __name__ == "__main__":
    main()
