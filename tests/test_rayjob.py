"""docs/rayjob.yaml: fields that KubeRay has, pods that Kubernetes takes, a dump that all see."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from ray.runtime_env import RuntimeEnv

from pipeline.cli import _parser

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "tests" / "data" / "kuberay" / "rayjob.json"
KUBERNETES = "1.33"

Job = dict[str, Any]


@pytest.fixture
def job() -> Job:
    content: Job = yaml.safe_load((ROOT / "docs" / "rayjob.yaml").read_text())
    return content


def groups(job: Job) -> list[Job]:
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def validate(job: Job) -> None:
    """Raise ValidationError for what is no RayJob; no unknown field in its pods either."""
    jsonschema.validate(job, json.loads(SCHEMA.read_text()))
    for group in groups(job):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}} | group["template"]
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_kuberay_takes_the_job(job: Job) -> None:
    validate(job)


def no_such_field(job: Job) -> None:
    job["spec"]["runtimeEnv"] = job["spec"].pop("runtimeEnvYAML")


def params_that_are_numbers(job: Job) -> None:
    groups(job)[0]["rayStartParams"] = {"num-cpus": 0}


def no_such_pod_field(job: Job) -> None:
    groups(job)[1]["template"]["spec"]["containers"][0]["volumeMount"] = []


def no_bounds(job: Job) -> None:
    del groups(job)[1]["maxReplicas"]


@pytest.mark.parametrize(
    "spoil", [no_such_field, params_that_are_numbers, no_such_pod_field, no_bounds]
)
def test_what_kuberay_would_refuse(job: Job, spoil: Callable[[Job], None]) -> None:
    spoiled = copy.deepcopy(job)
    spoil(spoiled)
    with pytest.raises(jsonschema.ValidationError):
        validate(spoiled)


def test_every_pod_sees_the_dump(job: Job) -> None:
    command, *words = shlex.split(job["spec"]["entrypoint"])
    args = _parser(words[:1]).parse_args(words)
    assert command == "crossrank"
    for group in groups(job):
        pod = group["template"]["spec"]
        (mount,) = pod["containers"][0]["volumeMounts"]
        assert mount["name"] in {volume["name"] for volume in pod["volumes"]}
        assert Path(args.dump).is_relative_to(mount["mountPath"])
        assert Path(args.out).is_relative_to(mount["mountPath"])


def test_images_and_environment_are_of_one_ray(job: Job) -> None:
    version = job["spec"]["rayClusterSpec"]["rayVersion"]
    for group in groups(job):
        (container,) = group["template"]["spec"]["containers"]
        assert container["image"].startswith(f"rayproject/ray:{version}-")
    assert RuntimeEnv(**yaml.safe_load(job["spec"]["runtimeEnvYAML"])).has_pip()
