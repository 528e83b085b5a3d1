"""The tools the model is given: their inputs, their results, what each does, and who may call which when."""
