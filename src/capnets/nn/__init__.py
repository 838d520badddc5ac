"""Layers, cells and attention, and the backends that compute them."""
