"""What can go wrong with a hub, told plainly. Knows nothing of files on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from toolsrv_registry.errors import DataError, NotFoundError


class HubError(DataError):
    """A hub cannot be reached, or what came from it is not what it lists."""


def proxies(environment: Mapping[str, str]) -> str:
    """Return the variables that name proxies, without their values; ``""`` where there are none."""
    named = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
    return ", ".join(
        sorted(key for key in environment if key.upper() in named and environment[key])
    )


def refusal(host: str, what: str, status: int, retry_after: str | None) -> HubError:
    """Return the error for a status that is neither success nor a matter of rights.

    ``retry_after`` is the header of that name; only a number of seconds is passed on.
    """
    wait = f"in {retry_after} seconds" if retry_after and retry_after.isdecimal() else "later"
    limited = "it is asked too often; " if status == 429 else ""
    account = ", or set HF_TOKEN: an account may ask more often" if status == 429 else ""
    return HubError(
        f"{host} answered {status} for {what}", hint=f"{limited}try again {wait}{account}"
    )


@contextlib.contextmanager
def told_plainly(what: str, endpoint: str | None) -> Iterator[None]:
    """Tell what a hub answers about ``what`` in our words; an error while it sends passes.

    Raises:
        NotFoundError: It is not there, or only for others.
        HubError: The hub refuses, fails, cannot be reached, or answers as no hub does.
    """
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with
    from huggingface_hub import constants, errors  # noqa: PLC0415 - heavy

    hub = endpoint or constants.ENDPOINT
    login = "hf auth login, or set HF_TOKEN, with an account that may read it"
    try:
        yield
    except errors.HFValidationError:  # a ValueError about what was asked, not about an answer
        raise
    except errors.OfflineModeIsEnabled:
        raise HubError(
            f"{what} cannot be pulled: HF_HUB_OFFLINE is set",
            hint="unset it, or bring the file yourself: toolsrv model use FILE, or --file FILE of "
            "toolsrv catalog pull and recordings pull",
        ) from None
    except errors.GatedRepoError:
        raise NotFoundError(
            f"{what} may be read only by those whom its owner lets in",
            hint=f"ask for access on its page on {hub}, then: {login}",
        ) from None
    except (
        errors.RepositoryNotFoundError,
        errors.RevisionNotFoundError,
        errors.RemoteEntryNotFoundError,
    ):
        raise NotFoundError(
            f"{hub} has no {what}, or it is private",
            hint=f"check the spelling; if it is private: {login}",
        ) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise HubError(f"{hub} answered {status} for {what}", hint=login) from None
        raise refusal(hub, what, status, error.response.headers.get("retry-after")) from None
    except (httpx2.ConnectError, httpx2.ProxyError, httpx2.InvalidURL) as error:
        by = proxies(os.environ)
        raise HubError(
            f"{hub} cannot be reached: {error or type(error).__name__}",
            hint="check the connection"
            + (f", the proxy ({by})" if by else "")
            + ", and HF_ENDPOINT if it is set",
        ) from None
    except (
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
    ) as error:  # as it takes an answer apart
        raise HubError(
            f"{hub} answered with something that is no hub's when asked for {what}",
            hint="check HF_ENDPOINT if it is set, and whether a proxy or a login page answers",
        ) from error
