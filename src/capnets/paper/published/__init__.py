"""Every number that the paper prints, and where the printed numbers disagree."""
