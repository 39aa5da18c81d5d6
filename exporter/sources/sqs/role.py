"""Credentials of a role that is assumed, renewed before they expire."""

from __future__ import annotations

from functools import partial
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import NoCredentialsError

from .settings import Sqs

SESSION = "queue-exporter"  # how we are called in CloudTrail


class Role:
    """A provider of credentials for botocore: those that its own chain finds are used to assume the role."""

    METHOD = "assume-role"

    def __init__(self, session: botocore.session.Session, settings: Sqs, config: Config) -> None:
        self.chain = session.get_component("credential_provider")
        self.role_arn = settings.role_arn
        self.client = partial(
            session.create_client, region_name=settings.home, endpoint_url=settings.endpoint_url, config=config
        )

    def load(self) -> Any:
        """Credentials that assume the role when they are used first. Raises what botocore raises."""
        own = self.chain.load_credentials()
        if own is None:
            raise NoCredentialsError
        called = {"RoleSessionName": SESSION}
        fetcher = AssumeRoleCredentialFetcher(self.client, own, self.role_arn, extra_args=called)
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)
