"""`model.provider`: whole builds through the SDK's client of each cloud provider, over HTTP on loopback."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.conftest import MakeProject, make_project
from tests.models.cloud_gateway import ACCESS_KEY, FOUNDRY_KEY, REGION, SECRET_KEY, CloudGateway
from tests.needs import lacking
from tests.project import Project, build, plan

__all__ = ["make_project"]

MODEL = {
    "bedrock": "eu.anthropic.claude-sonnet-5-5-v1:0",
    "vertex": "claude-sonnet-5-5@20260901",
    "foundry": "mine",
}
BASE = {"bedrock": "", "vertex": "/v1", "foundry": "/anthropic"}
LIBRARY = {"bedrock": "boto3", "vertex": "google.auth", "foundry": "anthropic"}


def through(gateway: CloudGateway, project: Project, folder: Path, *, secret: str = SECRET_KEY) -> None:
    """Let the project's commands use the gateway, with dummy credentials. Anthropic's own key stays set."""
    if find_spec(LIBRARY[gateway.provider].partition(".")[0]) is None:
        lacking(LIBRARY[gateway.provider])
    project.variables |= {
        "LOPEN_MODEL__PROVIDER": gateway.provider,
        "LOPEN_MODEL__BASE_URL": gateway.url + BASE[gateway.provider],
        "LOPEN_ORACLE__MODEL": MODEL[gateway.provider],
    }
    if gateway.provider == "foundry":
        project.variables |= {"ANTHROPIC_FOUNDRY_API_KEY": FOUNDRY_KEY}
    elif gateway.provider == "bedrock":
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": REGION}
        project.variables |= {**keys, "AWS_EC2_METADATA_DISABLED": "true"}
    else:
        account = folder / "account.json"
        account.write_text(json.dumps(service_account(gateway.url + "/token")))
        project.variables |= {
            "GOOGLE_APPLICATION_CREDENTIALS": str(account),
            "CLOUD_ML_REGION": "europe-west1",
            "ANTHROPIC_VERTEX_PROJECT_ID": "tests",
        }


def service_account(token_uri: str) -> dict[str, str]:
    """A Google service account with a key made here, whose tokens come from loopback."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "project_id": "tests",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "lopen@tests.example.invalid",
        "token_uri": token_uri,
    }


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("bedrock", "/model/eu.anthropic.claude-sonnet-5-5-v1:0/invoke-with-response-stream"),
        (
            "vertex",
            "/v1/projects/tests/locations/europe-west1/publishers/anthropic/models/"
            "claude-sonnet-5-5@20260901:streamRawPredict",
        ),
        ("foundry", "/anthropic/v1/messages"),
    ],
)
def test_a_module_is_built_through_a_cloud_provider(
    make_project: MakeProject, tmp_path: Path, provider: str, path: str
) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.endpoint is not None
    throttled = 1 if provider == "bedrock" else 0
    with CloudGateway(provider, project.endpoint.url, throttled=throttled).serving() as gateway:
        through(gateway, project, tmp_path)
        ran = project.approved_run("calc", "--model", MODEL[provider])

    assert ran.code == 0, (ran.err, gateway.refusals)
    assert "return a + b" in project.built("calc.py")
    assert set(gateway.paths) == {path}
    assert len(gateway.paths) == len(project.requests) + len(project.oracle_requests) + throttled
    assert {r["model"] for r in project.requests} == ({MODEL[provider]})
    assert gateway.tokens_given == (1 if provider == "vertex" else 0)


def test_refused_credentials_are_named_without_being_shown(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project([plan()])
    project.specify()
    assert project.endpoint is not None
    with CloudGateway("bedrock", project.endpoint.url).serving() as gateway:
        through(gateway, project, tmp_path, secret="another-secret-of-aws")
        ran = project.approved_run("calc", "--model", MODEL["bedrock"])

    assert (ran.code, gateway.refusals) == (1, ["the signature differs"])
    assert "HTTP 403" in ran.err
    assert "another-secret-of-aws" not in ran.out + ran.err
    assert project.requests == []


@pytest.mark.parametrize(
    ("provider", "says"),
    [("bedrock", "AWS_REGION"), ("vertex", "CLOUD_ML_REGION"), ("foundry", "ANTHROPIC_FOUNDRY_API_KEY")],
)
def test_missing_credentials_are_named_before_any_request(
    make_project: MakeProject, provider: str, says: str
) -> None:
    project = make_project([plan()], LOPEN_MODEL__PROVIDER=provider)
    project.specify()

    ran = project.approved_run()

    assert (ran.code, project.requests) == (1, [])
    assert says in ran.err
