"""Training: recipes, losses, priors, callbacks and checkpoints."""
