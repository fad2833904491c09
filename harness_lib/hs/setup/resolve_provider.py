"""Provider and model for a command that needs them."""

from __future__ import annotations

from harness_lib.errors import EnvSetupError
from harness_lib.loop import discovery, pipeline
from harness_lib.loop.failures import GarbageError, HookError, HookFailedError, ProviderError
from harness_lib.loop.piped import as_object
from harness_lib.loop.providers import endpoints
from harness_lib.loop.runtime import Runtime


def resolve(runtime: Runtime) -> None:
    """Set the run's provider and model by the stage `resolve`. Raises EnvSetupError where none is ready."""
    asked = {"provider": runtime.provider, "model": runtime.model}
    try:
        resolved = as_object(pipeline.call(runtime, "resolve", asked, is_told=True)) or {}
    except GarbageError as failure:
        raise HookFailedError(f"{failure}.", "See hs hooks resolve.") from failure
    except HookError as failure:
        problem = (as_object(failure.result) or {}).get("error") or str(failure)
        raise EnvSetupError(str(problem)) from failure
    runtime.env["HARNESS_PROVIDER"] = str(resolved.get("provider") or "")
    runtime.env["HARNESS_MODEL"] = str(resolved.get("model") or "")
    discovery.refresh(runtime)
    _check(runtime)


def _check(runtime: Runtime) -> None:
    """Raise EnvSetupError where the provider lacks a key or a login: a session could not go on."""
    try:
        endpoints.check(runtime)
    except ProviderError as error:
        raise EnvSetupError(str(error)) from error
