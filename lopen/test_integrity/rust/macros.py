"""Macros of Rust as text that its grammar can read: a macro's arguments are tokens to it."""

from __future__ import annotations

import re

_MACRO_CALL = re.compile(
    rb"\b((?:prop_|debug_)?assert(?:_eq|_ne)?|panic|unreachable|unimplemented|todo)!(?=\s*\()"
)
_SIGN = re.compile(rb"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^\\'])'|[(){}\[\]]", re.DOTALL)
_PROPERTIES = re.compile(rb"\b(proptest!(?=\s*\{))|\b(proptest!\s*\([^|;{}]{0,200}\|\()|\bfn\s+\w+\s*\(")


def readable_macros(text: bytes) -> bytes:
    """Rust whose usual macros are written as calls, a vector and a module, every byte at its place."""
    text = _MACRO_CALL.sub(rb"\1_", text)
    text = text.replace(b"vec![", b"   &[")
    return _readable_properties(text) if b"proptest!" in text else text


def _readable_properties(text: bytes) -> bytes:
    """The properties of proptest as functions and closures without parameters, every byte at its place."""
    readable = bytearray(text)
    for found in _PROPERTIES.finditer(text):
        if found[1]:
            readable[found.start() : found.end()] = b"mod prop_" + found[0][9:]
            continue
        end = closing(text, found.end())
        given = text[found.end() : end]
        if re.search(rb"\bin\b", given):
            readable[found.end() : end] = re.sub(rb"[^\n]", b" ", given)
        if found[2]:
            readable[found.start() : found.start() + 9] = b"proptest_"
    return bytes(readable)


def closing(text: bytes, start: int) -> int:
    """Where the bracket stands that closes one opened before `start`; signs in strings are none."""
    depth = 1
    for found in _SIGN.finditer(text, start):
        depth += (found[0] in (b"(", b"[", b"{")) - (found[0] in (b")", b"]", b"}"))
        if not depth:
            return found.start()
    return len(text)
