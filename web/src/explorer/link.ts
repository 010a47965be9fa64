/** The scenario as the address holds it: what differs from where the configuration starts. */
import type { Settings, Typed } from "./server";

export interface Linked { key: string; name: string; settings: Settings; lost: number }

export function keyOf(hash: string): string {
  const told = hash.replace(/^#/, "").split("?")[0];
  try {
    return decodeURIComponent(told);
  } catch {
    return told.slice(0, 80);
  }
}

export function writeLink(key: string, name: string, settings: Settings, start: Settings): string {
  const told = new URLSearchParams();
  if (name) told.set("name", name);
  for (const [field, value] of Object.entries(settings.fields)) if (value !== start.fields[field]) told.set(`f.${field}`, value);
  for (const [entry, typed] of Object.entries(settings.entries)) {
    const began = start.entries[entry];
    if (typed.on !== began.on || typed.by !== began.by || typed.value !== began.value) {
      told.set(`e.${entry}`, `${typed.on ? "" : "-"}${typed.by === "margin" ? "m" : "b"}:${typed.value}`);
    }
  }
  const query = told.toString();
  return `#${key}${query ? `?${query}` : ""}`;
}

/** What a link says that this configuration knows; the rest is counted as lost. */
export function readLink(hash: string, key: string, start: Settings): Linked {
  const told = new URLSearchParams(hash.slice(hash.indexOf("?") + 1));
  const settings: Settings = { fields: { ...start.fields }, entries: { ...start.entries } };
  let lost = 0;
  for (const [place, value] of hash.includes("?") ? told : []) {
    const [kind, of] = [place.slice(0, 2), place.slice(2)];
    const typed = /^(-?)([bm]):(.*)$/s.exec(value);
    if (place === "name") continue;
    if (kind === "f." && Object.hasOwn(settings.fields, of) && value.length <= 400) settings.fields[of] = value;
    else if (kind === "e." && Object.hasOwn(settings.entries, of) && typed && typed[3].length <= 400) {
      settings.entries[of] = { on: !typed[1], by: typed[2] === "m" ? "margin" : "budget", value: typed[3] } as Typed;
    } else lost += 1;
  }
  const name = hash.includes("?") ? (told.get("name") ?? "") : "";
  return { key, name: name.slice(0, 80), settings, lost };
}
