"""The prompt: versioned templates, its parts, and how they are cut to size. Pure."""
