"""`python -m svmarrow`: the command line."""

from svmarrow.cli import main

if __name__ == "__main__":
    main()
