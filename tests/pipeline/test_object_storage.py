"""Dumps under s3://: the answer of a folder; what the storage refuses is one clear line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
JSON_DUMP = ROOT / "examples" / "tp2_dp2_log_of_zero"
EVERYTHING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
Variables = dict[str, str]


def crossrank(variables: Variables, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline." + str(words[0]), *map(str, words[1:])]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)


@pytest.fixture(scope="module")
def storage() -> Iterator[Variables]:
    """A server that checks keys and signatures; return the variables that open it."""
    port = free_port()
    program = Path(sys.executable).with_name("moto_server")
    # the first three actions make the user, whom all others need
    server = subprocess.Popen(
        [str(program), "-p", str(port)],
        env=os.environ | {"INITIAL_NO_AUTH_ACTION_COUNT": "3"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port)
        yield a_user(f"http://127.0.0.1:{port}")
    finally:
        server.kill()
        server.wait()


def wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as connection:
            if not connection.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.2)
    raise AssertionError("the storage does not come up")


def a_user(endpoint: str) -> Variables:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    place = {"AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
    iam = boto3.client("iam", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x",
                       endpoint_url=endpoint)  # fmt: skip
    iam.create_user(UserName="reader")
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=json.dumps(EVERYTHING))
    keys = {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }
    return clean | place | keys


def upload(variables: Variables, folder: Path, bucket: str) -> None:
    s3 = boto3.client(
        "s3",
        variables["AWS_DEFAULT_REGION"],
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )
    s3.create_bucket(Bucket=bucket)
    for file in folder.rglob("*"):
        if file.is_file():
            s3.upload_file(str(file), bucket, f"runs/{file.relative_to(folder)}")


@pytest.fixture(scope="module")
def dumps(storage: Variables, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same dump as JSON and as shards, in a bucket each; bucket -> folder here."""
    shards = tmp_path_factory.mktemp("dumps") / "shards"
    assert crossrank(storage, "ingest", JSON_DUMP, shards).returncode == 0
    found = {"json": JSON_DUMP, "shards": shards}
    for bucket, folder in found.items():
        upload(storage, folder, bucket)
    return found


def analyzed(variables: Variables, place: object, out: Path, *words: str) -> dict[str, Any]:
    done = crossrank(variables, "analyze", place, "--out", out, *words)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return {key: value for key, value in result.items() if key != "dump"}


@pytest.mark.parametrize("bucket", ["json", "shards"])
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_the_answer_of_a_folder(
    storage: Variables, dumps: dict[str, Path], tmp_path: Path, bucket: str, engine: str
) -> None:
    there = analyzed(storage, f"s3://{bucket}/runs", tmp_path / "there", "--engine", engine)
    here = analyzed(storage, dumps[bucket], tmp_path / "here")
    assert there == here
    assert there["origins"][0]["call"] == "Torch.log.0.forward"
    assert not list(tmp_path.glob(".*"))


def test_a_query(storage: Variables, dumps: dict[str, Path]) -> None:
    sql = "SELECT count(*) AS n FROM calls"
    answers = [
        crossrank(storage, "query", place, sql, "--format", "csv").stdout
        for place in ("s3://shards/runs", dumps["shards"])
    ]
    assert answers[0] == answers[1] == "n\n76\n"


def test_an_endpoint_in_the_url(storage: Variables, dumps: dict[str, Path], tmp_path: Path) -> None:
    endpoint = storage["AWS_ENDPOINT_URL"].removeprefix("http://")
    variables = {key: value for key, value in storage.items() if key != "AWS_ENDPOINT_URL"}
    url = f"s3://shards/runs?endpoint_override={endpoint}&scheme=http"
    assert analyzed(variables, url, tmp_path / "answer")["origins"]


@pytest.mark.parametrize(
    ("changed", "place", "says"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "shards/runs", "refuses these credentials"),
        ({"AWS_ACCESS_KEY_ID": "AKIAWRONG"}, "shards/runs", "refuses these credentials"),
        ({}, "nobucket/runs", "does not exist"),
        ({}, "shards/nothing", "does not exist"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "shards/runs", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    storage: Variables, dumps: dict[str, Path], changed: Variables, place: str, says: str
) -> None:
    done = crossrank(storage | changed, "analyze", f"s3://{place}", "--quiet")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"crossrank: s3://{place} ")
    assert says in line


def test_a_broken_shard_is_named(storage: Variables, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    assert crossrank(storage, "ingest", JSON_DUMP, broken).returncode == 0
    (broken / "step=0" / "rank=1" / "tensors-00000.parquet").write_bytes(b"")
    upload(storage, broken, "broken")
    there = analyzed(storage, "s3://broken/runs", tmp_path / "there")
    here = analyzed(storage, broken, tmp_path / "here")
    assert json.dumps(there).replace("s3://broken/runs", str(broken)) == json.dumps(here)
    assert "(s3://broken/runs/step=0/rank=1)" in there["warnings"][0]["text"]
