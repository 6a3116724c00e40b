"""Containers of Podman or Docker, through their command line: the one thing that both have, daemon or not."""
