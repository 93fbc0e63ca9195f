"""``python -m surff``: the command line."""

from surff.cli import main

if __name__ == "__main__":
    main()
