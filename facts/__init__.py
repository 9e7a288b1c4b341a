"""The vocabulary: what can be known about a training run, as frozen typed facts."""
