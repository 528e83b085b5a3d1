"""Tests that are compared by name: C#, Kotlin, Ruby, PHP, C and C++."""
