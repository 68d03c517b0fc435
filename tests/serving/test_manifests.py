"""Manifests: read with lines, held to Kubernetes' schema, and safe to read whoever wrote them."""

from __future__ import annotations

import sys
from fractions import Fraction

import pytest

from gpulab.subjects.serving import manifests
from gpulab.subjects.serving.manifests import BadManifest

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: a:1
"""


def test_a_field_is_found_with_its_line():
    found = manifests.read(JOB)
    place = ("spec", "template", "spec", "containers", 0, "image")
    assert found.at(*place) == "a:1" and found.lines[place] == 10
    assert found.where(*place) == "`spec.template.spec.containers[0].image` (line 10)"
    assert found.at("spec", "nothing", 3) is None
    assert found.where("spec", "backoffLimit") == "`spec.backoffLimit` (line 4)"
    manifests.hold_to_schema(found, "Job")


@pytest.mark.parametrize(
    "text, words",
    [
        (7, "this is int"),
        ("", "holds 0 objects"),
        ("a: 1\n---\nb: 2", "holds 2 objects"),
        ("a: [1", "not YAML; line 1"),
        ("a:\n\tb: 1", "not YAML; line 2"),
        ("- 1", "starts with fields"),
        ("a: 1\nb: 2\na: 3", "`a` stands twice, in lines 1 and 3"),
        ("a: &x [1]\nb: *x", "line 2 refers to an anchor"),
        ("a: " + "[" * 40 + "]" * 40, "nested more than"),
        ("a" * 30_000, "characters"),
        ("a: !!python/object:os.system x", "not YAML"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(text, words):
    with pytest.raises(BadManifest, match=words):
        manifests.read(text)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("batch/v1", "v1", r"`apiVersion` \(line 1\) is 'v1'; it must be batch/v1"),
        ("kind: Job", "kind: ../../etc/passwd", "it must be Job"),
        ("restartPolicy", "restartPolice", "no field of Kubernetes 1.34; did you mean `restartPolicy`"),
        (
            "spec:\n  template",
            "spec:\n  backoffLimit: many\n  template",
            "is 'many'; the schema asks for an integer",
        ),
        ("      - name: main\n        image", "      - image", "lacks the field `name`"),
    ],
)
def test_what_the_schema_refuses_is_said_with_field_and_line(old, new, words):
    assert old in JOB
    with pytest.raises(BadManifest, match=words):
        manifests.hold_to_schema(manifests.read(JOB.replace(old, new)), "Job")


def test_without_the_extra_nothing_is_said_about_a_manifest(monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes_validate", None)
    with pytest.raises(manifests.SchemasMissing, match="pip install"):
        manifests.hold_to_schema(manifests.read(JOB), "Job")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(manifests.SchemasMissing, match="pip install"):
        manifests.read(JOB)


@pytest.mark.parametrize(
    "value, amount",
    [
        (2, 2),
        ("500m", Fraction(1, 2)),
        ("16Gi", 16 * 2**30),
        ("1.5Ki", 1536),
        ("1e3", 1000),
        (0.5, Fraction(1, 2)),
        ("2k", 2000),
    ],
)
def test_quantities(value, amount):
    assert manifests.quantity(value) == amount


@pytest.mark.parametrize(
    "value", ["", "Gi", "16GB", "1/2", "-1", "1e99999999", True, None, [1], "1 Gi", "nan"]
)
def test_no_quantities(value):
    with pytest.raises(ValueError, match="no quantity"):
        manifests.quantity(value)
