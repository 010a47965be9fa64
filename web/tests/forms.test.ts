import { test } from "node:test";
import assert from "node:assert/strict";
import { type Form, answerOf, combine, linear, ratio, rowThatIs } from "../src/forms";

function form(cells: Record<string, [number, number, number]>): Form {
  return {
    cells: new Map(Object.entries(cells).map(([key, [weight]]) => [key, weight])),
    known: new Map(Object.entries(cells).map(([key, [, value, variance]]) => [key, { value, variance }])),
  };
}
const a = form({ x: [1, 100, 9] }), b = form({ y: [1, 40, 16] }), both = form({ x: [1, 100, 9], y: [1, 40, 16] });

test("variances of independent cells add", () => {
  const found = answerOf([a, b], "sum", 2);
  assert.deepEqual(found, { estimate: 140, low: 130, high: 150 });
  assert.deepEqual(answerOf([a, b], "difference", 2), { estimate: 60, low: 50, high: 70 });
});

test("a cell that two rows hold counts once", () => {
  // A total less its part has the variance of the other part.
  assert.deepEqual(answerOf([both, b], "difference", 2), { estimate: 100, low: 94, high: 106 });
  assert.deepEqual(linear(combine([a, a], [1, -1]), 2), { estimate: 0, low: 0, high: 0 });
});

test("ratios have the set of Fieller", () => {
  const found = ratio(a, b, 2);
  assert.equal(found.estimate, 2.5);
  for (const end of [found.low, found.high]) {
    // Where the set ends the difference is z standard deviations from 0.
    assert.ok(Math.abs((100 - end * 40) ** 2 - 4 * (9 + end * end * 16)) < 1e-6);
  }
  assert.ok(found.low < 2.5 && 2.5 < found.high);
  const share = ratio(b, both, 2, 100);
  assert.ok(Math.abs(share.estimate - 100 * (40 / 140)) < 1e-9);
  assert.ok(share.high < 100);
});

test("what cannot be told has a reason", () => {
  assert.equal(ratio(a, form({ y: [1, 3, 16] }), 2).reason, "rays");
  assert.equal(ratio(a, form({ y: [1, 0, 16] }), 2).reason, "zero");
  assert.equal(answerOf([], "sum", 2), "choose");
  assert.equal(answerOf([a], "ratio", 2), "two");
});

test("a sum that is a row is found, and no other", () => {
  const sums = [[0, 1, 2], [0], [1, 2], [1], [2]];
  assert.equal(rowThatIs(sums, [3, 4], "sum"), 2);
  assert.equal(rowThatIs(sums, [0, 1], "difference"), 2);
  assert.equal(rowThatIs(sums, [1, 3], "sum"), -1);
  assert.equal(rowThatIs(sums, [2, 3], "sum"), -1);
  assert.equal(rowThatIs(sums, [1, 0], "difference"), -1);
  assert.equal(rowThatIs(sums, [1, 1], "difference"), -1);
  assert.equal(rowThatIs(sums, [0, 1], "ratio"), -1);
  assert.equal(rowThatIs([], [0, 1], "sum"), -1);
});
