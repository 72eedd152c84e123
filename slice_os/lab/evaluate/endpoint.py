"""A language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import os
from typing import Any

from slice_os.errors import EvaluationError

BASE_URL, MODEL, KEY = "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_KEY"
_RETRIED = (408, 429, 500, 502, 503, 504)


class Endpoint:
    """Chat completions of a model, with retries where the server is busy or slow.

    Attributes:
        model: The model's name.
    """

    def __init__(
        self,
        base_url: str | None = None,
        model: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        """Use the address and the model given, or those of the environment.

        The key is read from OPENAI_API_KEY alone and never shown; a server at home needs none.

        Args:
            base_url: Such as ``http://localhost:8000/v1``; OPENAI_BASE_URL if None.
            model: OPENAI_MODEL if None.
            timeout: Seconds that an answer may take.
            retries: How often a request is sent again after a busy, slow or broken answer.

        Raises:
            EvaluationError: The address or the model is not known.
        """
        import urllib3

        address = base_url or os.environ.get(BASE_URL, "")
        self.model = model or os.environ.get(MODEL, "")
        if not address.startswith(("http://", "https://")):
            raise EvaluationError(
                f"No language model is known: set {BASE_URL}, such as http://localhost:8000/v1."
            )
        if not self.model:
            raise EvaluationError(f"The language model has no name: set {MODEL}, or give --model.")
        self._url = address.rstrip("/") + "/chat/completions"
        self._key = os.environ.get(KEY, "")
        self._http = urllib3.PoolManager(
            maxsize=32,
            timeout=urllib3.Timeout(connect=10, read=timeout),
            retries=urllib3.Retry(
                retries,
                backoff_factor=0.5,
                backoff_jitter=0.5,
                status_forcelist=_RETRIED,
                allowed_methods=None,
                raise_on_status=False,
            ),
        )

    def __repr__(self) -> str:
        return f"<Endpoint {self.model}>"

    def complete(self, prompt: str) -> str:
        """Return the model's answer to `prompt`; an answer without text is "".

        Raises:
            EvaluationError: The server cannot be reached, refuses, or gives no such answer.
        """
        import urllib3

        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}]}
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            answer = self._http.request("POST", self._url, json=body, headers=headers)
        except urllib3.exceptions.HTTPError as exc:
            raise EvaluationError(
                f"The language model at {self._url} cannot be reached ({type(exc).__name__}): "
                f"check {BASE_URL}; the same command goes on from here."
            ) from exc
        if answer.status >= 400:
            raise EvaluationError(
                f"The language model at {self._url} refuses with status {answer.status} "
                f"({_reason(answer.data)}): check {KEY}, {MODEL} and {BASE_URL}; the same command "
                "goes on from here."
            )
        try:
            said: Any = json.loads(answer.data)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError) as exc:
            raise EvaluationError(
                f"{self._url} does not answer as an OpenAI-compatible endpoint: check {BASE_URL}."
            ) from exc
        return said if isinstance(said, str) else ""


def _reason(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())[:120] or "no reason given"
