"""Matching: programs of positive conjunctions and numbered facts in, all matches out. See README.md in this folder."""
