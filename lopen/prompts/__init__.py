"""What the model is told: versioned templates, the parts of a prompt, and how they are cut to size. Pure."""
