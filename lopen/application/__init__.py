"""Use cases that the commands share: wiring a session, opening the store, driving, approving, replaying."""
