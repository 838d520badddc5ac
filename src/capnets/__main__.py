"""`python -m capnets` is the command line."""

from capnets.cli import main

if __name__ == "__main__":
    main()
