"""The embedded example: two small profile folders (``demo/``) and the simulator that wrote them."""
