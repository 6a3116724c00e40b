"""The seam to any Kubernetes-shaped API; here I/O begins."""
