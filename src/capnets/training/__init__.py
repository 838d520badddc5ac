"""Training: a recipe, one plain loop, knowledge about added values, and checkpoints."""
