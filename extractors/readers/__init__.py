"""Readers: one module per on-disk format, each giving the canonical tables of one rank (``tables``)."""
