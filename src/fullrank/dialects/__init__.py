"""One file per API group: its YAML to and from the one job shape, and its status words."""
