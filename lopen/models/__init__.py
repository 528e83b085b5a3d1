"""The model: messages in and out, prompts, prices, and the adapters that reach an endpoint."""
