"""`python -m fullrank` is `fullrank`."""

from fullrank.cli import main

main()
