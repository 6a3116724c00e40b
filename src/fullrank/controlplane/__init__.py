"""The embedded API server: one process, one SQLite file, the part of the Kubernetes API that jobs and kubectl need."""
