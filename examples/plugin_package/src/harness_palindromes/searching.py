"""A command: `harness palindromes TEXT`."""

from __future__ import annotations

import click


@click.command()
@click.argument("text")
def longest(text: str) -> None:
    """Print the longest word of TEXT that is a palindrome."""
    click.echo(max((word for word in text.split() if word == word[::-1]), key=len, default="none"))
