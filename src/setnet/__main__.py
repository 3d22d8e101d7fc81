"""`python -m setnet`: the command line."""

from setnet.cli import main

main()
