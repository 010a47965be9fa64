"""Several releases certified together: joint promises by unit and neighbours, and refusals of what cannot be added."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from manifests import US, manifest
from plans import made_up, plan_of

from yupana.audit.certificate import certificate_of_set
from yupana.audit.tradeoff import pure_guess, zcdp_guess
from yupana.cli.main import main
from yupana.errors import OutputError
from yupana.plan.measurement import Mechanism, of_household_record, of_own_record
from yupana.plan.plan import Plan
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.configuration import TAUS, budgets, production_config
from yupana.report.certificate import certificate_set_page
from yupana.topdown.plan import make_plan
from yupana.topdown.reading.configuration import read_configuration

HOUSEHOLDS = replace(
    made_up("safetab-h", lambda s: of_household_record(s, Mechanism.ZCDP), Fraction(3)), privacy_unit="household record"
)
PERSONS = replace(made_up("safetab-p", of_own_record, Fraction(2)), privacy_unit="person record")
PURE = replace(made_up("safetab-p", of_own_record, Fraction(1, 2), Mechanism.PURE), privacy_unit="person record")


def certified(*plans: Plan, cap: int | None = None, **more: object) -> dict[str, Any]:
    named = [(f"r{n}", manifest(plan, created=f"2026-01-0{n + 1}", **more)) for n, plan in enumerate(plans)]
    return certificate_of_set(named, cap)


def losses(found: dict[str, Any], of: str, symbol: str = "rho") -> dict[tuple[str, str], Fraction | None]:
    return {
        (row["unit"], row["neighbours"]): None if row[symbol] is None else Fraction(row[symbol])
        for row in found["guarantee"]
        if row["of"] == of
    }


@pytest.mark.slow
def test_losses_of_a_person_add_over_products() -> None:
    found = certified(US, PERSONS, HOUSEHOLDS)
    rho = US.loss()
    assert losses(found, "person") == {
        ("person", "unbounded"): rho + 2 + 6,
        ("person", "same_household"): 2 * rho + 4 + 6,
        ("person", "bounded"): 2 * rho + 4 + 24,
    }
    # Records add where they are the same: persons here, households apart.
    records = losses(found, "record")
    assert records["person record", "bounded"] == 2 * rho + 4
    assert records["household record", "bounded"] == 6
    assert losses(found, "household") == {}
    assert [r["protects"] for r in found["releases"]] == [
        "one person record: whether one person record is added or left out",
        "one person record: whether one person record is added or left out",
        "one household record: whether one household record is added or left out",
    ]


@pytest.mark.slow
def test_a_declared_cap_gives_what_a_household_loses() -> None:
    found = certified(US, HOUSEHOLDS, cap=5)
    person, household = losses(found, "person"), losses(found, "household")
    assert {kind: loss for (_, kind), loss in household.items()} == {
        kind: 25 * loss for (_, kind), loss in person.items() if loss is not None
    }
    assert "household of at most 5" in certificate_set_page(found)
    assert "has no bound" in certificate_set_page(certified(US, HOUSEHOLDS))


@pytest.mark.slow
def test_pure_and_zcdp_together_are_zcdp_and_pure_alone_stays_pure() -> None:
    mixed = certified(PERSONS, PURE)
    assert mixed["mechanism"] == "zcdp"
    assert losses(mixed, "person")["person", "unbounded"] == 2 + Fraction(1, 8)
    pure = certified(PURE, replace(PURE, product="phsafe2"))
    assert pure["mechanism"] == "pure"
    assert losses(pure, "person", "epsilon")["person", "bounded"] == 2
    row = next(r for r in pure["guarantee"] if r["of"] == "person" and r["neighbours"] == "bounded")
    assert row["best_guess"] == pure_guess(2.0)
    assert "ρ" not in certificate_set_page(pure)


@pytest.mark.slow
def test_each_promise_says_what_an_attacker_learns() -> None:
    found = certified(
        PERSONS, replace(PERSONS, measurements=(replace(PERSONS.measurements[0], budget=Fraction(1, 99)),))
    )
    row = next(r for r in found["guarantee"] if r["of"] == "person" and r["neighbours"] == "unbounded")
    rho = 2 + Fraction(1, 99)
    assert row["best_guess"] == zcdp_guess(rho)
    assert next(r["tight"] for r in row["epsilon"] if r["delta"] == 1e-10) == epsilon_tight(rho, 1e-10)
    share = math.ceil(row["best_guess"] * 1000) / 10
    assert row["attacker"].startswith("Whoever sees both of these releases, knows everything else about the census")
    assert f"guesses right at most {share:g}% of the time" in row["attacker"]
    page = certificate_set_page(found)
    assert row["attacker"] in page
    assert "<script" not in page
    near = next(r for r in certified(US, HOUSEHOLDS)["guarantee"] if r["neighbours"] == "bounded")
    assert "next to nothing" in near["attacker"]


@pytest.mark.slow
def test_invariants_empty_the_column_of_the_whole_set() -> None:
    persons, units = (make_plan(read_configuration(f"{name}-2020-us")) for name in ("pl94", "h1"))
    found = certified(US, persons, units, parameters={"tau": TAUS, "invariants": {"State": ["total"]}})
    joint = losses(found, "person")
    assert joint["person", "unbounded"] is None
    assert joint["person", "bounded"] == 2 * US.loss() + persons.loss() + 2 * units.loss()
    empty = next(r for r in found["guarantee"] if r["of"] == "person" and r["neighbours"] == "unbounded")
    assert "r1 leave no such neighbours" in empty["empty"]
    assert "best_guess" not in empty
    assert empty["empty"] in certificate_set_page(found)
    assert found["invariants"] == ["total of every State"]


@pytest.mark.slow
def test_what_may_not_be_released_marks_the_set_and_confidential_is_refused() -> None:
    marked = certificate_of_set(
        [("a", manifest(US)), ("b", manifest(PERSONS, reasons=["the noise was made from a seed"]))]
    )
    assert marked["status"] == "NOT FOR RELEASE"
    assert marked["reasons"] == ["b: the noise was made from a seed"]
    assert "NOT FOR RELEASE" in certificate_set_page(marked)
    silent = certificate_of_set([("a", manifest(US)), ("b", manifest(PERSONS, status="NOT FOR RELEASE"))])
    assert (silent["status"], silent["reasons"]) == ("NOT FOR RELEASE", ["b: its manifest says so"])
    with pytest.raises(OutputError, match="b: the release is CONFIDENTIAL"):
        certificate_of_set([("a", manifest(US)), ("b", manifest(PERSONS, status="CONFIDENTIAL"))])


def test_counts_without_noise_promise_nothing_and_are_marked() -> None:
    boundless = made_up("safetab-p", of_own_record, math.inf)
    found = certificate_of_set([("a", manifest(US)), ("b", manifest(boundless, reasons=["a budget is infinite"]))])
    assert found["status"] == "NOT FOR RELEASE"
    assert all("learn with certainty" in r["attacker"] for r in found["guarantee"] if r["of"] == "person")


@pytest.mark.slow
def test_the_same_measurements_are_not_counted_twice() -> None:
    with pytest.raises(OutputError, match="a and b hold the same measurements"):
        certificate_of_set([("a", manifest(US)), ("b", manifest(US, postprocessing=["suppression"]))])


def test_what_bounds_no_loss_of_a_person_is_refused() -> None:
    old = manifest(US)
    del old["plan"]["totals"]["person"]
    with pytest.raises(OutputError, match="b: the losses in its manifest are no losses"):
        certificate_of_set([("a", manifest(PERSONS)), ("b", old)])
    nothing = replace(PERSONS, measurements=(replace(PERSONS.measurements[0], person=None),))
    with pytest.raises(OutputError, match="r1: safetab-p bounds no loss of one person"):
        certified(HOUSEHOLDS, nothing)


def test_records_add_where_nothing_is_known_of_a_person() -> None:
    nothing = replace(PERSONS, measurements=(replace(PERSONS.measurements[0], person=None),))
    for other, of_person in ((PERSONS, 1), (nothing, 2)):
        found = certified(nothing, replace(other, product="other"))
        assert set(losses(found, "person").values()) == {None}
        assert losses(found, "record")["person record", "bounded"] == 8
        whose = " and ".join(["r0", "r1"][:of_person])
        empty = {row["empty"] for row in found["guarantee"] if "empty" in row}
        assert f"the plan or the invariants of {whose} bound no loss of one person" in empty
        page = certificate_set_page(found)
        assert "ρ of one person record" in page
        assert "has no bound" not in page


@pytest.mark.thorough
def test_the_command_certifies_several_releases_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    census, config = str(tmp_path / "census"), str(tmp_path / "config.json")
    assert main(["synth", census, "--households", "60", "--states", "44", "--seed", "1"]) == 0
    Path(config).write_text(json.dumps({**production_config(), "state_filter": ["44"]}))
    one, two, out = (str(tmp_path / name) for name in ("one", "two", "out"))
    assert main(["phsafe", "run", config, census, one]) == 0
    tight = ("--sensitivity", "tight", "--seed", "3")
    assert main(["phsafe", "run", config, census, two, *tight]) == 0
    capsys.readouterr()
    assert main(["audit", "certificate", one, two, out, "--household-cap", "3"]) == 0
    found = json.loads(Path(out, "certificate.json").read_text())
    assert found["status"] == "NOT FOR RELEASE"
    assert [r["name"] for r in found["releases"]] == ["one", "two"]
    rho = plan_of(budgets(puerto_rico=False), TAUS, Mechanism.ZCDP).loss()
    # Published noise promises 2 rho to who moves, tight noise 4 rho.
    assert losses(found, "person")["person", "bounded"] == 6 * rho
    assert losses(found, "household")["household of at most 3 persons", "bounded"] == 54 * rho
    assert "NOT FOR RELEASE" in Path(out, "certificate.html").read_text()
    assert len(json.loads(Path(out, "manifest.json").read_text())["certifies"]) == 2
    assert main(["audit", "certificate", one, one, out, "--overwrite"]) == 2
    assert "the same measurements" in capsys.readouterr().err
    assert main(["audit", "certificate", one, str(tmp_path / "x"), "--household-cap", "3"]) == 2
    with Path(two, "PH2.csv").open("a") as file:
        file.write("1\n")
    assert main(["audit", "certificate", one, two, str(tmp_path / "x")]) == 2
    assert not (tmp_path / "x").exists()
