"""The ledger file: what several runs spend adds up, for records, persons and households; nothing is lost or forged."""

import json
import multiprocessing
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from safetab_worlds import random_world, seeded, write_data, write_parameters

from hollerith.cli.main import main
from hollerith.errors import BudgetError
from hollerith.plan.account import charge_account
from hollerith.plan.measurement import (
    Measurement,
    Mechanism,
    PersonSensitivity,
    Sensitivity,
    of_household_record,
    of_own_record,
)
from hollerith.plan.plan import Neighbours, Plan
from hollerith.plan.unit import OWN, PERSON, RECORD, Unit
from hollerith.privacy.exact import INFINITE, Budget
from hollerith.products.phsafe.plan import plan_of
from hollerith.products.phsafe.production import TAUS, budgets, production_plan
from hollerith.topdown.plan import make_plan
from hollerith.topdown.read_configuration import read_configuration

PLAN = production_plan(puerto_rico=True)
PURE = plan_of(budgets(puerto_rico=True), TAUS, Mechanism.PURE)


def own(path: Path, plan: Plan = PLAN, limit: Budget | None = None) -> object:
    """Charge records, and tell what they have spent under the plan's own neighbours."""
    return charge_account(path, "CEF", plan, {} if limit is None else {OWN: limit})[OWN]


def test_runs_add_up_on_disk_until_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    assert own(path, limit=Fraction(3)) == PLAN.loss()
    assert own(path) == 2 * PLAN.loss()
    before = path.read_text()
    with pytest.raises(BudgetError, match="past its limit of 3"):
        own(path)
    assert path.read_text() == before
    assert charge_account(path, "another census", PLAN)[OWN] == PLAN.loss()


def test_a_limit_is_reached_exactly_but_not_passed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path, limit=2 * PLAN.loss())
    own(path)
    with pytest.raises(BudgetError, match="limit"):
        own(path)


def test_a_recorded_limit_cannot_be_changed_by_a_run(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path, limit=Fraction(3))
    with pytest.raises(BudgetError, match="limit on 'CEF' is 3, not 4"):
        own(path, limit=Fraction(4))


def test_losses_of_different_definitions_are_never_added(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    with pytest.raises(BudgetError, match="mechanism"):
        own(path, PURE)
    with pytest.raises(BudgetError, match="privacy_unit"):
        own(path, replace(PLAN, privacy_unit="household record"))


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": "hollerith-ledger-1"}', "\x00\x01", '{"format": 1, "data": 3}']
)
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    with pytest.raises(BudgetError, match="not a ledger"):
        own(path)
    assert path.read_text() == content


def test_a_ledger_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="ledger"):
        own(tmp_path / "missing" / "ledger.json")


def _charge(path: str, times: int) -> None:
    plan: Plan = production_plan(puerto_rico=True)
    for _ in range(times):
        own(Path(path), plan)


def test_runs_side_by_side_lose_no_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_charge, args=(str(path), 5)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert len(json.loads(path.read_text())["data"]["CEF"]["runs"]) == 40


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_ledger_has_one_account_whatever_link_leads_to_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to("real.json")
    own(link, limit=Fraction(3))
    own(real)
    assert link.is_symlink()
    for path in (real, link):
        with pytest.raises(BudgetError, match="limit of 3"):
            own(path)
    assert len(json.loads(real.read_text())["data"]["CEF"]["runs"]) == 2


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(BudgetError, match="ledger"):
        own(tmp_path / "a")


def test_a_ledger_with_a_second_name_is_refused(tmp_path: Path) -> None:
    own(tmp_path / "one.json")
    os.link(tmp_path / "one.json", tmp_path / "other.json")
    with pytest.raises(BudgetError, match="second name"):
        own(tmp_path / "other.json")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "ledger.json")
    with pytest.raises(BudgetError, match="not a regular file"):
        own(tmp_path / "ledger.json")


def test_a_file_beside_the_ledger_is_left_alone(tmp_path: Path) -> None:
    beside = tmp_path / "ledger.json.new"
    beside.write_text("mine")
    own(tmp_path / "ledger.json")
    own(tmp_path / "ledger.json")
    assert beside.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock", "ledger.json.new"]


def test_a_charge_is_on_disk_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    path.chmod(0o640)
    events: list[str] = []
    sync, rename = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        events.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    own(path)
    assert events == ["file", "rename", "folder"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def ledger_of(**changes: object) -> str:
    run = {"time": "2026", "product": "phsafe", "losses": dict.fromkeys(RECORD.columns, "1")}
    account: dict[str, object] = {
        "unit": "record",
        "privacy_unit": "person record",
        "neighbours": "unbounded",
        "mechanism": "zcdp",
        "limits": {},
        "runs": [run],
    }
    for key, value in changes.items():
        if key in run:
            run[key] = value
        elif value is None:
            del account[key]
        else:
            account[key] = value
    return json.dumps({"format": "hollerith-ledger-2", "data": {"CEF": account}})


def losses(loss: object) -> dict[str, object]:
    return {**dict.fromkeys(RECORD.columns, "1"), "own": loss}


FORGED = {
    "a negative loss": ledger_of(losses=losses("-1000")),
    "a loss that is a number": ledger_of(losses=losses(-1)),
    "an enormous loss": ledger_of(losses=losses("1e999")),
    "no loss": ledger_of(losses={}),
    "a limit that is no text": ledger_of(limits={"own": 5}),
    "a limit that is no number": ledger_of(limits={"own": "x"}),
    "a negative limit": ledger_of(limits={"own": "-1"}),
    "an enormous limit": ledger_of(limits={"own": "1e999"}),
    "a limit on nothing": ledger_of(limits={"nothing": "1"}),
    "no privacy unit": ledger_of(privacy_unit=None),
    "no neighbours": ledger_of(neighbours=None),
    "no mechanism": ledger_of(mechanism=None),
    "an unknown mechanism": ledger_of(mechanism="none"),
    "no unit": ledger_of(unit=None),
    "a household without a cap": ledger_of(unit="household"),
    "a household with half a person": ledger_of(unit="household", household_cap=0.5),
    "runs that are none": ledger_of(runs=5),
    "a key twice": ledger_of().replace('"limits"', '"runs": [], "limits"', 1),
    "deep brackets": "[" * 100_000,
    "deep objects": '{"data":' * 100_000,
    "a number of many digits": '{"format": ' + "9" * 5000 + "}",
    "a format that is a list": '{"format": [], "data": {}}',
    "an earlier ledger without a privacy unit": '{"format": "hollerith-ledger-1", "data": {"CEF": {"runs": []}}}',
}


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_a_ledger_that_cannot_be_right_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    with pytest.raises(BudgetError, match="not a ledger"):
        own(path)
    assert path.read_text() == content


def test_the_ledger_that_the_forgeries_differ_from_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(ledger_of())
    assert own(path) == 1 + PLAN.loss()


@pytest.mark.parametrize("limit", [Fraction(-1), Fraction(10) ** 999])
def test_a_limit_that_the_file_could_not_keep_is_refused(tmp_path: Path, limit: Fraction) -> None:
    with pytest.raises(BudgetError, match="limit"):
        own(tmp_path / "ledger.json", limit=limit)
    assert not (tmp_path / "ledger.json").exists()


def test_an_earlier_ledger_is_read_and_its_charges_stand(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    runs = [{"time": "2026", "product": "phsafe", "loss": "1/2"}]
    account = {
        "privacy_unit": "person record", "neighbours": "unbounded", "mechanism": "zcdp", "limit": "3", "runs": runs
    }  # fmt: skip
    path.write_text(json.dumps({"format": "hollerith-ledger-1", "data": {"CEF": account}}))
    spent = charge_account(path, "CEF", PLAN)
    assert spent[OWN] == Fraction(1, 2) + PLAN.loss()
    # What was not recorded is not guessed.
    assert spent["bounded"] is None
    with pytest.raises(BudgetError, match="recorded without"):
        charge_account(path, "CEF", PLAN, {"bounded": Fraction(99)})
    own(path)
    with pytest.raises(BudgetError, match="limit of 3"):
        own(path)
    assert json.loads(path.read_text())["format"] == "hollerith-ledger-2"


@pytest.mark.parametrize("name", ["CEF ", " CEF", "CEF\u00a0", "CEF\n"])
def test_names_that_look_the_same_are_one_account(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    assert charge_account(path, name, PLAN)[OWN] == 2 * PLAN.loss()
    assert list(json.loads(path.read_text())["data"]) == ["CEF"]


@pytest.mark.parametrize("name", ["cef", "ＣＥＦ", "", "  ", "C\x1bEF"])
def test_names_that_may_be_a_slip_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ledger.json"
    own(path)
    before = path.read_text()
    with pytest.raises(BudgetError, match="name"):
        charge_account(path, name, PLAN)
    assert path.read_text() == before


def test_an_earlier_ledger_with_one_name_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    account = json.loads(ledger_of())["data"]["CEF"]
    path.write_text(json.dumps({"format": "hollerith-ledger-2", "data": {"CEF": account, "CEF ": account}}))
    with pytest.raises(BudgetError, match="one name"):
        own(path)


# --- columns, units, mechanisms -------------------------------------------------------------------------------------


def test_every_column_adds_up_and_can_be_limited(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    spent = charge_account(path, "CEF", PLAN, {"unbounded": Fraction(3), "bounded": Fraction(4)})
    assert spent == {
        "own": PLAN.loss(),
        "unbounded": PLAN.loss(),
        "same_household": 2 * PLAN.loss(),
        "bounded": 2 * PLAN.loss(),
    }
    with pytest.raises(BudgetError, match=r"bounded loss on 'CEF' to 4\.9066, past its limit of 4"):
        own(path)
    shown = json.loads(path.read_text())["data"]["CEF"]
    assert (shown["limits"], shown["spent"]["bounded"]) == ({"unbounded": "3", "bounded": "4"}, str(2 * PLAN.loss()))


def test_a_limit_on_neighbours_that_invariants_rule_out_is_refused(tmp_path: Path) -> None:
    topdown = make_plan(read_configuration("pl94-2020-us"))
    with pytest.raises(BudgetError, match="invariants leave no such neighbours"):
        charge_account(tmp_path / "ledger.json", "CEF", topdown, {"unbounded": Fraction(9)})
    spent = charge_account(tmp_path / "ledger.json", "CEF", topdown, {"bounded": Fraction(9)})
    assert spent["unbounded"] is None
    assert spent["bounded"] == topdown.loss()


def made_up(
    product: str,
    person: Callable[[Sensitivity], PersonSensitivity],
    budget: Budget = Fraction(1),
    mechanism: Mechanism = Mechanism.ZCDP,
) -> Plan:
    sensitivity = Sensitivity(Fraction(9), Fraction(18))
    m = Measurement(
        "m", "T", "l", 1, mechanism, Fraction(9), sensitivity, sensitivity, budget, person=person(sensitivity)
    )
    return Plan(product, "record", Neighbours.UNBOUNDED, "published", Fraction(9, 10), mechanism, (m,))


def test_products_of_different_records_add_up_by_person(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, unit=PERSON)
    persons = made_up("safetab-p", of_own_record, Fraction(2))
    charge_account(path, "CEF", persons, unit=PERSON)
    households = made_up("safetab-h", lambda s: of_household_record(s, Mechanism.ZCDP), Fraction(3))
    spent = charge_account(path, "CEF", households, unit=PERSON)
    rho = PLAN.loss()
    assert spent == {
        "unbounded": rho + 2 + 2 * 3,
        "same_household": 2 * rho + 2 * 2 + 2 * 3,
        "bounded": 2 * rho + 2 * 2 + 8 * 3,
    }
    topdown = charge_account(path, "CEF", make_plan(read_configuration("pl94-2020-us")), unit=PERSON)
    assert topdown["unbounded"] is None
    units = charge_account(path, "CEF", make_plan(read_configuration("h1-2020-us")), unit=PERSON)
    h1 = make_plan(read_configuration("h1-2020-us")).loss()
    assert units["same_household"] == topdown["same_household"]
    assert units["bounded"] == topdown["bounded"] + 2 * h1


@pytest.mark.parametrize(("mechanism", "factor"), [(Mechanism.ZCDP, 16), (Mechanism.PURE, 4)])
def test_a_household_of_k_persons_costs_k_squared_or_k_times_a_person(
    tmp_path: Path, mechanism: Mechanism, factor: int
) -> None:
    plan = made_up("safetab-p", of_own_record, Fraction(1, 2), mechanism)
    of_person = charge_account(tmp_path / "p.json", "CEF", plan, unit=PERSON)
    of_household = charge_account(tmp_path / "h.json", "CEF", plan, unit=Unit("household", 4))
    assert of_household == {column: factor * loss for column, loss in of_person.items()}


def test_a_household_without_a_cap_has_no_loss() -> None:
    with pytest.raises(BudgetError, match="without a cap"):
        Unit("household")
    with pytest.raises(BudgetError, match="cap"):
        Unit("person", 4)
    with pytest.raises(BudgetError, match="between 1 and"):
        Unit("household", 10**400)


def test_units_and_caps_are_never_mixed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, unit=Unit("household", 4))
    for unit in (Unit("household", 5), PERSON, RECORD):
        with pytest.raises(BudgetError, match="must not be added"):
            charge_account(path, "CEF", PLAN, unit=unit)


def test_pure_losses_enter_an_account_under_zcdp_as_half_their_square(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", made_up("safetab-p", of_own_record, Fraction(2)), unit=PERSON)
    pure = made_up("phsafe", of_own_record, Fraction(3), Mechanism.PURE)
    spent = charge_account(path, "CEF", pure, unit=PERSON)
    assert spent["unbounded"] == 2 + Fraction(9, 2)
    assert spent["bounded"] == 2 * 2 + Fraction(36, 2)
    # zCDP promises no pure DP.
    charge_account(path, "another", pure, unit=PERSON)
    with pytest.raises(BudgetError, match="mechanism"):
        charge_account(path, "another", made_up("safetab-p", of_own_record), unit=PERSON)


def test_a_plan_that_bounds_no_loss_of_a_person_is_refused(tmp_path: Path) -> None:
    plan = made_up("topdown", of_own_record)
    nothing = replace(plan, measurements=(replace(plan.measurements[0], person=None),))
    with pytest.raises(BudgetError, match="bounds no loss of one person"):
        charge_account(tmp_path / "ledger.json", "CEF", nothing, unit=PERSON)


def test_a_run_that_goes_on_is_charged_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    first = charge_account(path, "CEF", PLAN, {OWN: PLAN.loss()}, run="one")
    assert charge_account(path, "CEF", PLAN, {OWN: PLAN.loss()}, run="one") == first
    with pytest.raises(BudgetError, match="limit"):
        charge_account(path, "CEF", PLAN, run="another")
    cheaper = replace(PLAN, measurements=PLAN.measurements[1:])
    with pytest.raises(BudgetError, match="another loss"):
        charge_account(path, "CEF", cheaper, run="one")


def test_an_infinite_loss_passes_every_limit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    boundless = made_up("phsafe", of_own_record, INFINITE)
    with pytest.raises(BudgetError, match="to inf, past its limit of 3"):
        charge_account(path, "CEF", boundless, {"bounded": Fraction(3)}, unit=PERSON)
    assert charge_account(path, "CEF", boundless, unit=PERSON)["bounded"] == INFINITE
    assert charge_account(path, "CEF", boundless, unit=PERSON)["bounded"] == INFINITE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--unit", "household"), "without a cap"),
        (("--household-cap", "4"), "cap"),
        (("--unit", "person", "--limit", "3"), "unit person has no loss 'own' to limit"),
        (("--limit", "sideways=3"), "sideways"),
        (("--limit", "bounded=1,bounded=2"), "bounded"),
        (("--limit", "bounded=-1"), "negative"),
    ],
)
def test_the_command_line_refuses_what_has_no_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    ledger = ("--ledger", str(tmp_path / "ledger.json"), "--dataset", "CEF")
    try:
        # Before any data are looked at.
        status = main(["topdown", "run", "cook-2010", "nowhere", str(tmp_path / "out"), *ledger, *options])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    assert status == 2
    assert message in capsys.readouterr().err


def test_both_safetabs_run_into_one_account_of_persons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = random_world(seeded(5), noise="some")
    world.config.definition = "zcdp"
    parameters, data = write_parameters(tmp_path / "parameters", world), write_data(tmp_path / "data", world)
    ledger = ("--ledger", str(tmp_path / "ledger.json"), "--dataset", "CEF", "--unit", "person")
    outs = {name: str(tmp_path / name) for name in ("safetab-p", "safetab-h")}
    totals = ("--totals", f"{outs['safetab-p']}/T01001.csv")
    for name, more in (("safetab-p", ()), ("safetab-h", totals)):
        assert main([name, "run", str(parameters), str(data), outs[name], *ledger, *more]) == 0
    capsys.readouterr()
    expected = dict.fromkeys(PERSON.columns, Fraction(0))
    for name in outs:
        assert main([name, "plan", str(parameters), "--json"]) == 0
        of_person = json.loads(capsys.readouterr().out)["totals"]["person"]
        expected = {column: expected[column] + Fraction(of_person[f"{column}_rho"]) for column in expected}
    account = json.loads((tmp_path / "ledger.json").read_text())["data"]["CEF"]
    assert {column: Fraction(loss) for column, loss in account["spent"].items()} == expected
    assert [run["product"] for run in account["runs"]] == ["safetab-p", "safetab-h"]
    # Records of persons and of households are never added.
    other = ("--ledger", str(tmp_path / "other.json"), "--dataset", "CEF", "--overwrite")
    assert main(["safetab-p", "run", str(parameters), str(data), outs["safetab-p"], *other]) == 0
    assert main(["safetab-h", "run", str(parameters), str(data), outs["safetab-h"], *other, *totals]) == 2
    assert "must not be added" in capsys.readouterr().err
