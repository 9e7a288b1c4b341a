"""Renderings of one ``Diagnosis``; nothing is computed here."""
