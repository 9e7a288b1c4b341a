"""Hermes: an expert system that explains why a training job is slow, and proves it."""

__version__ = "0.1.0"
