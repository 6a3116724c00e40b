"""What an image name means where there are no containers: a Python environment and some files."""
