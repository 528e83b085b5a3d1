"""Edits of small projects, honest ones and weakenings, and a measure of what lopen says of each."""
