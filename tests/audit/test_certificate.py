"""The privacy certificate: its mathematics against exact discrete laws, its numbers, its page, its refusals."""

import json
import math
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests import US, manifest
from plans import plan_of

from yupana.audit.certificate import certificate
from yupana.audit.tradeoff import (
    PER_COUNT,
    SMOOTHING,
    composed,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_missed,
    pure_guess,
    pure_missed,
    variance_to_spare,
    zcdp_guess,
    zcdp_missed,
)
from yupana.cli.main import main
from yupana.errors import OutputError
from yupana.plan.exact_loss import delta_exact
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.laws import DiscreteGaussian
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight
from yupana.products.phsafe.configuration import TAUS, budgets, production_config
from yupana.release.folder import write_manifest
from yupana.report.certificate import certificate_page
from yupana.topdown.plan import lost, make_plan, semantics_of
from yupana.topdown.reading.configuration import read_configuration

# --- the mathematics ------------------------------------------------------------------------------------------------


def pair(sigma2: Fraction, shifts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Two neighbouring laws: discrete Gaussian noise on zeros, and on the shifts; one probability each per outcome."""
    law = DiscreteGaussian(sigma2)
    reach = int(12 * math.sqrt(sigma2)) + max(shifts)
    one, two = np.ones(1), np.ones(1)
    for shift in shifts:
        here = np.array([law.pmf(k) for k in range(-reach, reach + 1)])
        there = np.array([law.pmf(k - shift) for k in range(-reach, reach + 1)])
        one, two = np.outer(one, here).ravel(), np.outer(two, there).ravel()
    return one, two


def best_tests(one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the exact trade-off curve, by the lemma of Neyman and Pearson."""
    order = np.argsort(-two / np.maximum(one, 1e-300))
    accused, caught = np.cumsum(one[order]), np.cumsum(two[order])
    return np.concatenate([[0.0], accused]), 1 - np.concatenate([[0.0], caught])


@pytest.mark.parametrize(
    ("sigma2", "shifts"),
    [
        (Fraction(4), [1]),
        (Fraction(4), [3]),
        (Fraction(7, 2), [1, 2]),
        (Fraction(12), [4, 1]),
        (Fraction(50), [7]),
        (Fraction(5), [1, 1, 2]),
    ],
)
def test_the_curve_of_discrete_noise_lies_between_the_bounds(sigma2: Fraction, shifts: list[int]) -> None:
    one, two = pair(sigma2, shifts)
    distance = sum(shift * shift for shift in shifts)
    bound = composed(Fraction(distance) / (2 * sigma2), sigma2, distance)
    assert bound is not None
    assert bound.least_mu < bound.mu < bound.most_mu
    accused, missed = best_tests(one, two)
    for type_1 in (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.99):
        exact = float(np.interp(type_1, accused, missed))
        low, _, high = bound.missed(type_1)
        assert low - 1e-12 <= exact <= high + 1e-12
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        exact = float(np.maximum(two - math.exp(epsilon) * one, 0).sum())
        assert exact <= bound.delta(epsilon) + 1e-12
    for delta in (1e-2, 1e-4, 1e-6):
        epsilon = bound.epsilon(delta)
        assert float(np.maximum(two - math.exp(epsilon) * one, 0).sum()) <= delta * (1 + 1e-9)


def test_continuous_noise_alone_does_not_bound_discrete_noise() -> None:
    # What the allowance is for: at some errors the discrete test is better than the continuous one.
    one, two = pair(Fraction(4), [1])
    accused, missed = best_tests(one, two)
    shift = gaussian_missed(0.5, 0.01)
    assert min(float(m) - gaussian_missed(0.5, float(a)) for a, m in zip(accused, missed, strict=True)) < 0 < shift


def test_a_gaussian_shift_has_the_delta_of_its_densities() -> None:
    x = np.linspace(-12, 14, 400_001)
    for mu in (0.1, 1.0, 2.5):
        here, there = (np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (0.0, mu))
        for epsilon in (0.0, 0.5, 3.0):
            expected = float(np.maximum(there - math.exp(epsilon) * here, 0).sum() * (x[1] - x[0]))
            assert gaussian_delta(mu, epsilon) == pytest.approx(expected, abs=1e-7)
    assert gaussian_delta(1.0, 0.0) == pytest.approx(2 * NormalDist().cdf(0.5) - 1)
    # Far in the tail, where e^epsilon does not fit a double.
    assert 0 <= gaussian_delta(40.0, 1400.0) < 1e-20


@settings(max_examples=15, database=None)
@given(st.floats(0.01, 8), st.sampled_from((1e-4, 1e-6, 1e-10, 1e-12)))
def test_epsilon_and_delta_of_a_gaussian_are_inverse_and_better_than_those_of_zcdp(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta * (1 + 1e-9)
    if epsilon:
        assert gaussian_delta(mu, epsilon * (1 - 1e-6)) > delta
    assert epsilon <= epsilon_tight(mu * mu / 2, delta) <= epsilon_bun_steinke(mu * mu / 2, delta)


@settings(max_examples=15, database=None)
@given(st.floats(0.001, 20), st.floats(0, 1))
@pytest.mark.slow
def test_the_curve_of_zcdp_lies_below_that_of_the_gaussian_of_its_loss(rho: float, type_1: float) -> None:
    assert 0 <= zcdp_missed(rho, type_1) <= gaussian_missed(math.sqrt(2 * rho), type_1) + 1e-12
    assert zcdp_guess(rho) >= NormalDist().cdf(math.sqrt(2 * rho) / 2) - 1e-12
    assert zcdp_missed(rho, type_1) + type_1 >= 2 * (1 - zcdp_guess(rho)) - 1e-9


def test_randomised_response_attains_the_curve_of_pure_privacy() -> None:
    epsilon = 1.2
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert pure_missed(epsilon, 1 - truth) == pytest.approx(1 - truth)
    assert pure_guess(epsilon) == pytest.approx(truth)
    assert pure_missed(epsilon, 0.0) == 1.0
    assert pure_missed(epsilon, 1.0) == 0.0


def test_the_variance_that_is_spared_keeps_the_promise_and_no_more_could_be() -> None:
    rho, least, counts, delta = 2.5, 100.0, 5000, 1e-8
    promised = epsilon_tight(rho, delta)
    share = variance_to_spare(rho, least, counts, promised, delta)
    assert 0.05 < share < 0.1
    left = composed(rho / (1 - share), least * (1 - share), counts)
    more = composed(rho / (1 - share - 1e-6), least * (1 - share - 1e-6), counts)
    assert left is not None
    assert more is not None
    assert left.epsilon(delta) <= promised < more.epsilon(delta)
    # Continuous noise could spare more, and a promise by the simpler conversion more still.
    continuous = 1 - 2 * rho / _largest_mu(promised, delta) ** 2
    assert share < continuous < share + 0.02
    assert variance_to_spare(rho, least, counts, epsilon_bun_steinke(rho, delta), delta) > share
    assert composed(1, 3, 10) is None


def _largest_mu(epsilon: float, delta: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return low


def test_the_allowance_for_each_count_is_what_the_theta_function_says() -> None:
    # The sum over the integers of a normal kernel of variance s^2 wavers by kappa with where its centre lies.
    sums = [
        math.fsum(math.exp(-((z - y) ** 2) / (2 * 0.5)) for z in range(-40, 41)) / math.sqrt(2 * math.pi * 0.5)
        for y in (0.0, 0.25, 0.5)
    ]
    kappa = 2 * math.fsum(math.exp(-2 * math.pi**2 * 0.5 * m * m) for m in (1, 2, 3))
    assert sums[0] == pytest.approx(1 + kappa, abs=1e-15)
    assert 1 - kappa <= sums[2] <= sums[1] <= sums[0]
    assert pytest.approx(4 * math.exp(-2 * math.pi**2 * SMOOTHING), rel=1e-3) == PER_COUNT


# --- the certificate ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_certificate_of_2020_says_what_the_plan_promises_and_what_is_proven() -> None:
    found = certificate(manifest(US))
    by_kind = {row["neighbours"]: row for row in found["guarantee"]}
    assert by_kind["unbounded"]["promised"]["rho"] == "1257281/1000000"
    assert by_kind["bounded"]["proven_at_most"]["rho_float"] == pytest.approx(1.953631, abs=1e-6)
    for row in by_kind.values():
        for stated in row["promised"]["epsilon"]:
            assert stated["gaussian"] < stated["tight"] < stated["bun_steinke"]
    row = next(r for r in by_kind["bounded"]["promised"]["epsilon"] if r["delta"] == 1e-10)
    assert row["tight"] == pytest.approx(epsilon_tight(2.514562, 1e-10))
    curves = {curve["neighbours"]: curve for curve in found["attacker"]["curves"]}
    assert found["attacker"]["kind"] == "gaussian"
    # Phi(mu / 2) with mu^2 = 2 rho, and a little for the whole numbers.
    expected = NormalDist().cdf(math.sqrt(2 * 0.4884076641929499) / 2)
    assert expected < curves["unbounded"]["best_guess"] < expected + 0.002
    for curve in curves.values():
        for point in curve["points"]:
            assert 0 <= point["type_2"] <= point["type_2_continuous"] <= point["type_2_at_most"] <= 1
            assert point["type_1"] + point["type_2"] >= 2 * (1 - curve["best_guess"]) - 1e-9
    assert sum(Fraction(row["loss"]) for row in found["by_table"]) == US.loss()
    assert sum(Fraction(row["loss"]) for row in found["by_level"]) == US.loss()
    attributes = {row["attribute"]: row["loss_float"] for row in found["by_attribute"]}
    # Tenure is told by PH7 and PH8 alone: 2 tau^2 / (2 tau + 2)^2 of the one, half of the other.
    assert attributes["Tenure"] == pytest.approx(0.182221 * 200 / 484 + 0.001506 / 2)
    assert max(attributes.values()) <= 0.488408
    for row in found["by_attribute"]:
        assert 0 < row["epsilon_exact"] < epsilon_tight(Fraction(row["loss"]), row["delta"])
    tight = {row["delta"]: row for row in found["spare"]}
    assert 0.05 < tight[1e-10]["share"] < tight[1e-10]["share_bun_steinke"] < 0.25


@cache
def certified() -> dict[str, Any]:
    """The certificate of the plan of 2020; nobody may change it."""
    return certificate(manifest(US))


@pytest.mark.slow
def test_nothing_but_the_plan_and_the_manifest_of_public_things_decides() -> None:
    one = certified()
    two = certificate(manifest(US, tables={}, ledger={"spent": "7"}, failsafe=[{"parent": "1"}], confidential=3))
    assert {k: v for k, v in one.items() if k != "files"} == {k: v for k, v in two.items() if k != "files"}
    assert "confidential" not in json.dumps(two)
    assert one["files"] == {"PH1_num.csv": "ab12"}


@pytest.mark.parametrize(
    "plan",
    [
        US,
        pytest.param(make_plan(read_configuration("pl94-2020-us")), marks=pytest.mark.thorough),
        make_plan(read_configuration("h1-2020-us")),
    ],
)
@pytest.mark.slow
def test_curves_by_the_exact_law_are_proven_and_at_least_as_good(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    found = certified() if plan is US else certificate(manifest(plan))
    monkeypatch.setattr("yupana.audit.certificate.missed_exact", lambda *_: None)
    before = certificate(manifest(plan))
    for curve, old in zip(found["attacker"]["curves"], before["attacker"]["curves"], strict=True):
        assert (curve["exact"], old["exact"]) == (True, False)
        assert curve["best_guess"] <= old["best_guess"]
        for point, other in zip(curve["points"], old["points"], strict=True):
            assert point["type_2"] >= other["type_2"]
            # No test does better than the best guess allows.
            assert point["type_1"] + point["type_2"] >= 2 * (1 - curve["best_guess"]) - 1e-9
        if curve["exact"]:
            delta = delta_exact(plan, 0.0, curve["neighbours"])
            assert delta is not None
            assert curve["best_guess"] == min(old["best_guess"], (1 + delta) / 2)
    assert "exact law" in certificate_page(found)


@pytest.mark.slow
def test_the_exact_curve_is_below_every_test_of_the_noise_itself() -> None:
    """Thresholds of one noisy answer that moves by one: their errors, by the probabilities of the noise."""
    one = Sensitivity(Fraction(1), Fraction(1))
    for mechanism, budget in ((Mechanism.ZCDP, Fraction(3, 2)), (Mechanism.PURE, Fraction(2))):
        measured = Measurement("a", "a", "l", 1, mechanism, Fraction(1), one, one, budget, by_one=True)
        plan = Plan("p", "record", Neighbours.UNBOUNDED, "tight", Fraction(9, 10), mechanism, (measured,))
        curve = certificate(manifest(plan))["attacker"]["curves"][0]
        assert curve["exact"]
        below = {point["type_1"]: point["type_2"] for point in curve["points"]}
        for threshold in range(-2, 4):
            accused = 1 - measured.law.cdf(threshold - 1)
            missed = measured.law.cdf(threshold - 2)
            nearest = min(a for a in below if a >= accused)
            assert below[nearest] <= missed + 1e-12
            assert 1 - curve["best_guess"] <= (accused + missed) / 2 + 1e-12


@pytest.mark.slow
def test_adaptive_plans_and_pure_privacy_have_curves_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without_exact_law:
        without_exact_law.setattr("yupana.audit.certificate.missed_exact", lambda *_: None)
        told = {**US.as_json(), "product": "safetab-p"}
        adaptive = certificate({**manifest(US), "product": "safetab-p", "plan": told})
    assert adaptive["attacker"]["kind"] == "zcdp"
    assert not any(curve["exact"] for curve in adaptive["attacker"]["curves"])
    assert adaptive["spare"] == []
    assert "gaussian" not in adaptive["guarantee"][0]["promised"]["epsilon"][0]
    ours, theirs = (c["attacker"]["curves"][0]["points"][20]["type_2"] for c in (certified(), adaptive))
    assert theirs < ours
    pure = plan_of(budgets(puerto_rico=False), TAUS, Mechanism.PURE)
    found = certificate(manifest(pure))
    assert found["attacker"]["kind"] == "pure"
    assert found["guarantee"][0]["promised"]["epsilon"] == str(pure.loss())
    assert "zCDP" not in certificate_page(found)


@pytest.mark.slow
def test_topdown_is_certified_with_its_invariants_and_attributes() -> None:
    configuration = read_configuration("pl94-2020-us")
    parameters = {
        "schema": {a.name: list(a.labels) for a in configuration.schema.attributes},
        "invariants": {level: [q.name for q in queries] for level, queries in configuration.invariants.items()},
    }
    found = certificate(manifest(make_plan(configuration), system="topdown", parameters=parameters))
    assert found["invariants"] == ["total of every US", "total of every State"]
    ours = {row["attribute"]: Fraction(row["loss"]) for row in found["by_attribute"]}
    exact = {name: lost(of) for name, of in semantics_of(configuration)["attributes"].items()}
    assert set(ours) == set(exact)
    assert all(ours[name] >= exact[name] for name in exact)
    told = {row["attribute"]: row["epsilon_exact"] for row in found["by_attribute"]}
    assert told["hhgq"] == pytest.approx(6.937, abs=1e-3)
    assert "exact law" in certificate_page(found)
    assert found["guarantee"][-1]["neighbours"] == "bounded"
    assert "total of every State" in certificate_page(found)


@pytest.mark.slow
def test_the_page_is_one_file_that_loads_nothing_and_says_all() -> None:
    page = certificate_page(certified())
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    for words in (
        "right 69% of the time",
        "1.257281",
        "one person record is changed in any way",
        "a &lt;sharp&gt; bracket",
        "ab12",
        "wrong accusations (type I)",
    ):
        assert words in page
    assert "NOT FOR RELEASE" not in page
    assert "NOT FOR RELEASE" in certificate_page(certificate(manifest(US, reasons=["the noise was made from a seed"])))
    # The picture: a curve for each kind of neighbours that differs, inside its frame.
    curves = re.findall(r'd="M([^"]+)" stroke="#(?:3d86c6|e07b28|8180d6)"', page)
    assert len(curves) == 2
    points = [tuple(map(float, point.split(","))) for curve in curves for point in curve.split("L")]
    assert all(52 <= x <= 332 and 14 <= y <= 294 for x, y in points)


def test_counts_without_noise_are_certified_as_what_they_are() -> None:
    plan = plan_of(dict.fromkeys(budgets(puerto_rico=False), math.inf), TAUS, Mechanism.ZCDP)
    found = certificate(manifest(plan, reasons=["a budget is infinite"]))
    assert found["attacker"]["curves"] == []
    assert "protects nobody" in certificate_page(found)


@pytest.mark.parametrize("broken", [{}, {"plan": 3}, {"plan": {"mechanism": "zcdp"}}, {"plan": {"mechanism": "x"}}])
def test_a_manifest_without_a_plan_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(OutputError, match="holds no plan"):
        certificate(broken)


@pytest.mark.slow
def test_the_command_certifies_a_release_and_refuses_what_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["synth", str(tmp_path / "census"), "--households", "60", "--states", "44", "--seed", "1"]) == 0
    (tmp_path / "config.json").write_text(json.dumps({**production_config(), "state_filter": ["44"]}))
    release, out = tmp_path / "release", tmp_path / "out"
    assert main(["phsafe", "run", str(tmp_path / "config.json"), str(tmp_path / "census"), str(release)]) == 0
    capsys.readouterr()
    assert main(["audit", "certificate", str(release), str(out)]) == 0
    assert capsys.readouterr().out.split() == [str(out / "certificate.html"), str(out / "certificate.json")]
    found = json.loads((out / "certificate.json").read_text())
    assert found == certificate(json.loads((release / "manifest.json").read_text()))
    assert "right 69% of the time" in (out / "certificate.html").read_text()
    assert main(["audit", "certificate", str(release), str(out)]) == 2
    assert main(["audit", "certificate", str(release), str(out), "--overwrite"]) == 0
    assert main(["audit", "certificate", str(tmp_path / "census"), str(tmp_path / "x")]) == 2
    assert main(["audit", "certificate", str(tmp_path / "nowhere"), str(tmp_path / "x")]) == 2
    with (release / "PH2.csv").open("a") as file:
        file.write("1\n")
    assert main(["audit", "certificate", str(release), str(tmp_path / "x")]) == 2
    assert "not certified" in capsys.readouterr().err
    write_manifest(tmp_path / "census", {"yupana": "0", "tables": {}})
    assert main(["audit", "certificate", str(tmp_path / "census"), str(tmp_path / "x")]) == 2
    assert not (tmp_path / "x").exists()
