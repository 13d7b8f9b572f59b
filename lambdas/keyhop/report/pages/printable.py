"""Names that users gave, made fit to be shown: no character of them steers a terminal or a page."""


def printable(text: str, most: int = 0) -> str:
    """The text with controls, directions of writing, halves of characters and odd spaces written
    out, as \\u202e; cut to `most`, 0 for no end.
    """
    clean = "".join(one if one.isprintable() else _written_out(one) for one in text)
    return f"{clean[: most - 1]}…" if 0 < most < len(clean) else clean


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
