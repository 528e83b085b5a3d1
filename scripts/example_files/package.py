"""Bills by time of use: exact amounts, bands of the day, and the bill that follows from both."""
