"""Bytes as the protocol writes them in JSON."""

import binascii


def base64(data):
    """``data`` as text."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def from_base64(text):
    """The bytes of a field; b"" for a missing one."""
    return binascii.a2b_base64(text) if text else b""
