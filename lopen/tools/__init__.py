"""The model's tools: their inputs, results and effects, and the steps that offer them."""
