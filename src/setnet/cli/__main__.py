"""`python -m setnet.cli`."""

from setnet.cli import main

if __name__ == "__main__":
    main()
