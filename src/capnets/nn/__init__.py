"""Parts of networks: what is masked, encodes, remembers and attends."""
