"""Tests in JavaScript and TypeScript."""
