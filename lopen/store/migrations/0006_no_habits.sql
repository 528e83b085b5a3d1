DROP TABLE habits;  -- the history of calls is part of the circuit
