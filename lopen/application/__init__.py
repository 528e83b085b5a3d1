"""What the commands share: putting a session together, opening the store, driving, approving, replaying."""
