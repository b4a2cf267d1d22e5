"""Any program that ends up speaking the OpenAI protocol: `-- ./my_server --port {port}`."""

from __future__ import annotations

import sys

from server_launchers.deployment import Command, Readiness
from server_launchers.errors import LaunchError
from server_launchers.spec import ServerSpec

PLACES = ("{port}", "{host}", "{model}", "{served_name}")


def readiness(spec: ServerSpec) -> Readiness:
    """Its own health page where one is named; its list of models where a name to look for is given."""
    return Readiness(spec.health_path, lists_models=bool(spec.client_name))


def command(spec: ServerSpec, *, port: int) -> Command:
    """The given words with `{port}`, `{host}`, `{model}` and `{served_name}` filled in.

    Raises LaunchError where several replicas would all listen on the same port.
    """
    values = dict(zip(PLACES, (str(port), spec.host, spec.model, spec.client_name), strict=True))
    if spec.dp > 1 and not any("{port}" in word for word in spec.extra_flags):
        raise LaunchError("several replicas need `{port}` in the command line, so that each listens on its own")
    words = []
    for word in spec.extra_flags:
        for place, value in values.items():
            word = word.replace(place, value)
        words.append(word)
    secrets = {spec.api_key_env: spec.api_key_env} if spec.api_key_env else {}
    return Command(tuple(words), dict(spec.environment), secrets)


if __name__ == "__main__":
    from server_launchers.foreground import main

    sys.exit(main("command"))
