"""`harness completion`: what a shell needs to complete commands, flags and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from harness.cli.help import SpelledCommand

# Shell → the command that installs its script.
_WHERE = {
    "bash": "harness completion bash > ~/.local/share/bash-completion/completions/harness",
    "zsh": "harness completion zsh > ~/.zfunc/_harness    (with ~/.zfunc in fpath)",
    "fish": "harness completion fish > ~/.config/fish/completions/harness.fish",
}


@click.command("completion", cls=SpelledCommand, epilog="\b\n" + "\n".join(_WHERE.values()))
@click.argument("shell", type=click.Choice(list(_WHERE)))
def command(shell: str) -> None:
    """Print the script by which SHELL completes commands, flags, benchmarks, presets, providers, servers and runs."""
    from harness.cli.main import cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "harness", "_HARNESS_COMPLETE").source())
