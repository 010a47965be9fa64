/** Sums of measured cells, and intervals of them (docs/intervals.md). Nothing here knows of a page. */

export interface Measured { value: number; variance: number }
/** Measured cells with their weights: the noise of each is independent of that of the others. */
export interface Form { cells: Map<string, number>; known: Map<string, Measured> }
export type Reason = "treated" | "coterminous" | "estimates" | "topdown" | "suppressed" | "confidence" | "choose" | "two" | "zero" | "rays" | "sameDraw" | "missing" | "without" | "measured";
export interface Found { estimate: number; low: number; high: number; reason?: Reason; measured?: number }
export type Operation = "sum" | "difference" | "ratio" | "share";

/** A weighted sum of forms, in which a cell that several hold has its weights added. */
export function combine(forms: Form[], weights: number[]): Form {
  const cells = new Map<string, number>();
  const known = new Map<string, Measured>();
  forms.forEach((one, at) => {
    for (const [key, times] of one.cells) cells.set(key, (cells.get(key) ?? 0) + weights[at] * times);
    for (const [key, measured] of one.known) known.set(key, measured);
  });
  return { cells, known };
}

function covariance(a: Form, b: Form): number {
  let found = 0;
  for (const [key, weight] of a.cells) found += weight * (b.cells.get(key) ?? 0) * a.known.get(key)!.variance;
  return found;
}

function valueOf(form: Form): number {
  let found = 0;
  for (const [key, weight] of form.cells) found += weight * form.known.get(key)!.value;
  return found;
}

export function linear(form: Form, z: number): Found {
  const estimate = valueOf(form), half = z * Math.sqrt(covariance(form, form));
  return { estimate, low: estimate - half, high: estimate + half };
}

/** The set of ratios that the measurements do not rule out (Fieller 1954), if it has two ends. */
export function ratio(above: Form, below: Form, z: number, scale = 1): Found {
  const x = valueOf(above), y = valueOf(below);
  if (y === 0) return { estimate: NaN, low: NaN, high: NaN, reason: "zero" };
  const a = y * y - z * z * covariance(below, below);
  const b = x * y - z * z * covariance(above, below);
  const d = x * x - z * z * covariance(above, above);
  const estimate = (scale * x) / y;
  if (a <= 0) return { estimate, low: NaN, high: NaN, reason: "rays" };
  const half = Math.sqrt(Math.max(b * b - a * d, 0));
  return { estimate, low: (scale * (b - half)) / a, high: (scale * (b + half)) / a };
}

export function answerOf(forms: Form[], operation: Operation, z: number): Found | Reason {
  if (!forms.length) return "choose";
  if (operation === "sum" || operation === "difference") {
    return linear(combine(forms, forms.map((_, at) => (operation === "difference" && at ? -1 : 1))), z);
  }
  if (forms.length < 2) return "two";
  const rest = forms.slice(1);
  return ratio(forms[0], combine(rest, rest.map(() => 1)), z, operation === "share" ? 100 : 1);
}

/** The row that adds up the same as a sum of others; -1 if none does. */
export function rowThatIs(sums: number[][], cells: number[], operation: Operation): number {
  if (operation !== "sum" && operation !== "difference") return -1;
  const weights = new Map<number, number>();
  cells.forEach((cell, at) => sums[cell]?.forEach((part) => weights.set(part, (weights.get(part) ?? 0) + (operation === "difference" && at ? -1 : 1))));
  for (const [part, weight] of weights) { if (weight === 0) weights.delete(part); else if (weight !== 1) return -1; }
  return weights.size ? sums.findIndex((of) => of.length === weights.size && of.every((part) => weights.has(part))) : -1;
}
