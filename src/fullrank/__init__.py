"""Fullrank runs distributed training jobs from the YAML people already have. Every rank starts, or none does."""

__version__ = "0.1.0"
