"""Gives a running server other weights without a restart, if its engine documents a way (`WeightSwap`)."""

from __future__ import annotations

from dataclasses import replace

import httpx

from server_launchers.deployment import Readiness
from server_launchers.engines import table
from server_launchers.errors import LaunchError
from server_launchers.keeping import readiness
from server_launchers.keeping.supervisor import RunningServer
from server_launchers.spec import ServerSpec
from server_launchers.terminal import visible

SWAP_SECONDS = 1800.0
"""Seconds that reading the weights may take."""


def possible(running: ServerSpec, target: ServerSpec) -> bool:
    """Whether a running server can serve another spec once it has loaded other weights.

    running: the spec of the running server. target: the other spec. A server cannot swap with several replicas, with a
    key, or with a served name of its own, which SGLang loses in the swap.
    """
    able = table.by_name(target.engine).weight_swap is not None and target.dp == 1 and target.nodes == 1
    plain = target.served_name is None and target.api_key_env is None
    # All fields but the model must be equal; a field that the spec gets later is compared without a change here.
    return able and plain and replace(running, model=target.model) == target


def swap(server: RunningServer, target: ServerSpec) -> RunningServer:
    """Have a server load the weights of `target`. Returns the server once it has generated a token with them.

    Raises LaunchError with the engine's own message; the caller must then stop the server, because nobody knows which
    weights it has.
    """
    (url,) = server.base_urls
    how = table.by_name(target.engine).weight_swap
    assert how is not None
    try:
        # No proxy from the environment: this address is on this machine.
        with httpx.Client(base_url=url, timeout=SWAP_SECONDS, trust_env=False) as client:
            answer = client.post(how.page, json={how.field: target.model})
            reply = answer.json()
            if answer.status_code != 200 or reply.get("success") is not True:
                message = visible(str(reply.get("message", answer.text)), 300)
                raise LaunchError(f"{server.name} does not take the weights of {target.model}: {message}")
            model_path = client.get(how.model_page).json().get(how.model_field)
            # Success is only the engine's word; a server with the old weights would give results under the wrong
            # model's name.
            if model_path != target.model:
                raise LaunchError(
                    f"{server.name} reports the model {visible(str(model_path), 200)}, not {target.model}"
                )
        model = readiness.check(url, Readiness(None, lists_models=True), table.client_name(target), None)
    except (httpx.HTTPError, ValueError, AttributeError, readiness.NotReady, readiness.Foreign) as error:
        reason = visible(str(error), 200)
        raise LaunchError(f"{server.name} does not take the weights of {target.model}: {reason}") from None
    return replace(server, model=model, swapped=True)
