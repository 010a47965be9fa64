/** Classes of a map: how areas are shaded. */
export interface Valued { area: number; value: number; low: number; high: number }
export interface Classes { of: Map<number, string>; legend: { shade: string; low: number; high: number }[]; unsure: number }

/** Equal counts have one shade; areas whose interval holds the break have none, for noise alone may have put them there. */
export function classesOf(rows: Valued[], broken: number | null): Classes {
  const at = broken ?? 0;
  const isUnsure = (row: Valued) => row.low <= at && row.high >= at && row.low < row.high;
  const of = new Map<number, string>();
  for (const row of rows) if (!Number.isNaN(row.value) && isUnsure(row)) of.set(row.area, "unsure");
  const known = rows.filter((row) => !Number.isNaN(row.value) && !isUnsure(row));
  const ends = new Map<string, [number, number]>();
  const put = (row: Valued, shade: string) => {
    of.set(row.area, shade);
    const had = ends.get(shade);
    ends.set(shade, had ? [Math.min(had[0], row.value), Math.max(had[1], row.value)] : [row.value, row.value]);
  };
  if (broken === null) {
    known.sort((a, b) => a.value - b.value);
    const number = Math.min(5, known.length);
    let place = 0;
    known.forEach((row, index) => {
      if (!index || known[index - 1].value !== row.value) place = Math.floor((index * number) / known.length);
      put(row, `shade-${place}`);
    });
  } else {
    // Steps are as wide below the break as above it.
    const far = known.map((row) => Math.abs(row.value - at)).sort((a, b) => a - b);
    const steps = [far[Math.floor(far.length / 3)] ?? 0, far[Math.floor((2 * far.length) / 3)] ?? 0];
    for (const row of known) {
      const step = steps.filter((one) => Math.abs(row.value - at) > one).length;
      put(row, row.value < at ? `below-${step}` : `above-${step}`);
    }
  }
  const order = ["below-2", "below-1", "below-0", "above-0", "above-1", "above-2", "shade-0", "shade-1", "shade-2", "shade-3", "shade-4"];
  const legend = order.flatMap((shade) => { const found = ends.get(shade); return found ? [{ shade, low: found[0], high: found[1] }] : []; });
  return { of, legend, unsure: [...of.values()].filter((shade) => shade === "unsure").length };
}
