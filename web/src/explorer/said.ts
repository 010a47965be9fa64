/**
 * What the library says, in Spanish: sentences with `{0}` for what they are about. A sentence that comes from the server
 * is found by its own words, so that the library says it once, in English, to every reader; what is not here stays so.
 */
import { type Language, fill } from "./words";

const es: Record<string, string> = {
  // Units and losses.
  "person record": "registro de persona", "household record": "registro de hogar", "housing unit": "vivienda", household: "hogar", "household of {0}": "hogar de {0}",
  "{0}, unbounded": "{0}, quitar o añadir", "{0}, bounded": "{0}, cambiar", "{0}, within a household": "{0}, dentro de un hogar", "{0}, PL94": "{0}, PL94",
  "ε at δ = {0}": "ε con δ = {0}", "ε at δ = {0}, exact": "ε con δ = {0}, exacto", none: "ninguno",
  "{0}, by the tight conversion": "{0}, por la conversión ajustada", unbounded: "quitar o añadir", bounded: "cambiar",
  "of any run, by the exact law of the loss": "de cualquier ejecución, por la ley exacta de la pérdida",
  "one {0} is added or left out": "se añade o se quita un registro ({0})",
  "one {0} is changed in any way, its place included": "se cambia de cualquier modo un registro ({0}), también su lugar",
  "one {0} is changed and stays in its household": "se cambia un registro ({0}) que queda en su hogar",
  "all persons of a household of at most {0} are added or left out": "se añaden o se quitan todas las personas de un hogar de {0} a lo sumo",
  "all persons of a household of at most {0} are changed in any way, the place included": "se cambian de cualquier modo todas las personas de un hogar de {0} a lo sumo, también su lugar",
  "{0}; proven at most {1}": "{0}; demostrado a lo sumo {1}", "the two passes protect different people and are never added": "las dos pasadas protegen a personas distintas y nunca se suman",
  "{0} bounds no loss of one person, as a change of one person alters the records of others (docs/person-loss.md); it cannot be added up by person or household": "{0} no acota la pérdida de una persona, pues el cambio de una altera los registros de otras (docs/person-loss.md); no se puede sumar por persona ni por hogar",
  "Best guess about one {0}, right at most": "Mejor conjetura sobre {0}, acierta a lo sumo", "Largest margin of a typical count": "Mayor margen de un recuento típico",
  "Largest margin of error": "Mayor margen de error", "Unreliable counts": "Recuentos poco fiables", off: "sin medir",
  "a budget is so large that less than one count in a million would have noise": "un presupuesto es tan grande que menos de un recuento en un millón tendría ruido",
  "the loss is above {0}, which protects nobody": "la pérdida supera {0}, lo que no protege a nadie",
  // Fields.
  "Confidence of the margins, percent": "Confianza de los márgenes, por ciento", "Margins of error": "Márgenes de error", "δ of the ε stated": "δ del ε indicado",
  "Persons of the household whose loss is told": "Personas del hogar cuya pérdida se indica", "A count is unreliable whose margin is above this percentage of it": "Es poco fiable un recuento cuyo margen supera este porcentaje de él",
  Sensitivities: "Sensibilidades", "whole, by the exact law": "enteros, por la ley exacta", "z times σ, as in 2020": "z por σ, como en 2020", "as published": "como se publicaron", "tight: the least proven": "ajustadas: lo mínimo demostrado",
  "privacy defn": "definición de privacidad", "max race codes": "códigos de raza a lo sumo", "allow negative counts": "permitir recuentos negativos", "privacy budget p stage 1 fraction": "parte del presupuesto de la etapa 1",
  "zero suppression chance": "probabilidad de suprimir ceros", kind: "clase", "fanout cutoff": "límite de ramas", "entity threshold": "umbral de entidades", "bypass cutoff": "límite de paso", grouping: "agrupación", most: "a lo sumo", live: "vivo", yes: "sí", no: "no",
  conventional: "convencional", optimized: "optimizada", pieces: "por piezas", orig: "original", even: "pareja", aian: "aian", zcdp: "zcdp", puredp: "puredp",
  "zcdp: discrete Gaussian noise, budgets are rho; puredp: geometric noise, budgets are epsilon": "zcdp: ruido gaussiano discreto, los presupuestos son rho; puredp: ruido geométrico, los presupuestos son épsilon",
  "how many race codes of a record count": "cuántos códigos de raza de un registro cuentan", "whether noisy counts below zero stay as they are": "si los recuentos con ruido menores que cero quedan como están",
  "the share that chooses the table of each group": "la parte que elige la tabla de cada grupo", "the chance that the total of an empty group is left out": "la probabilidad de omitir el total de un grupo vacío",
  "thresholds p": "umbrales p", "thresholds h t3": "umbrales h t3", "thresholds h t4": "umbrales h t4", spine: "espina", "tables {0} limit": "límite de la tabla {0}", "areas {0}": "áreas {0}",
  // Products, tables and levels.
  "the United States": "Estados Unidos", "TopDown, persons": "TopDown, personas", "Puerto Rico, persons": "Puerto Rico, personas", "TopDown, housing units": "TopDown, viviendas", "Puerto Rico, housing units": "Puerto Rico, viviendas",
  "one county of 2010": "un condado de 2010", "TopDown, persons, block totals": "TopDown, personas, totales de manzanas", "one county of 2010, block totals": "un condado de 2010, totales de manzanas",
  "Tables of a description": "Tablas de una descripción", "an example, for the files of a synthetic census": "un ejemplo, para los archivos de un censo sintético", "the S-DHC of 2020 (PHSafe) of the United States": "el S-DHC de 2020 (PHSafe) de Estados Unidos",
  "people in households, under 18 and over": "personas en hogares, menores y mayores de 18", "occupied housing units": "viviendas ocupadas", "people in households, by household type": "personas en hogares, por tipo de hogar",
  "children in households, by relationship and household type": "niños en hogares, por parentesco y tipo de hogar", "people in families, under 18 and over": "personas en familias, menores y mayores de 18", families: "familias",
  "own children, by family type and age": "hijos propios, por tipo de familia y edad", "people in households, by tenure": "personas en hogares, por tenencia", "occupied housing units, by owner or renter": "viviendas ocupadas, por propiedad o alquiler",
  "a total to sex by 23 ages": "de un total a sexo por 23 edades", "household type": "tipo de hogar", tenure: "tenencia", detailed: "detallado", total: "total", "People by age": "Personas por edad", "People by tenure of their home": "Personas por tenencia de su vivienda", "Homes by tenure": "Viviendas por tenencia",
  "People and homes by state": "Personas y viviendas por estado",
  "Nation, by race (A–G)": "País, por raza (A–G)", "Nation, by origin (H, I)": "País, por origen (H, I)", "Nation, everyone": "País, todos", "States, by race (A–G)": "Estados, por raza (A–G)", "States, by origin (H, I)": "Estados, por origen (H, I)", "States, everyone": "Estados, todos",
  "Nation, regional": "País, regionales", "Nation, detailed": "País, detallados", "States, regional": "Estados, regionales", "States, detailed": "Estados, detallados", "Counties, regional": "Condados, regionales", "Counties, detailed": "Condados, detallados",
  "Tracts, regional": "Secciones, regionales", "Tracts, detailed": "Secciones, detallados", "Places, regional": "Lugares, regionales", "Places, detailed": "Lugares, detallados", "Tribal areas, regional": "Áreas tribales, regionales", "Tribal areas, detailed": "Áreas tribales, detallados",
  US: "Estados Unidos", State: "Estado", County: "Condado", Tract: "Sección", "Block Group": "Grupo de manzanas", Block: "Manzana", nation: "país", state: "estado", "state-by-origin": "estado por origen", "usa {0}": "país {0}", "state {0}": "estado {0}",
  place: "lugar", "county subdivision": "subdivisión de condado", aiannh: "área tribal", county: "condado", tract: "sección", "block group": "grupo de manzanas", block: "manzana",
  "County {0}": "Condado {0}", "Tract {0}": "Sección {0}", "Place {0}": "Lugar {0}", "county {0}": "condado {0}", "tract {0}": "sección {0}", "place {0}": "lugar {0}", "block group {0}": "grupo de manzanas {0}", "blocks of {0}": "manzanas de {0}",
  Sex: "Sexo", Age: "Edad", Race: "Raza", Ethnicity: "Etnia", Relation: "Parentesco", Tenure: "Tenencia", Place: "Lugar", "Household type": "Tipo de hogar", "block within its {0}": "manzana dentro de su {0}", us: "país", race: "raza",
  // Whose counts.
  "{0} invented households, scaled to the {1} of 2020": "{0} hogares inventados, a la escala de los {1} de 2020", "the release {0}, noise included": "la publicación {0}, con su ruido",
  "invented people: a nation of {0} households, scaled to 2020, and one state in full size of {1} households, in the groups of the demonstration": "personas inventadas: un país de {0} hogares, a la escala de 2020, y un estado en tamaño real de {1} hogares, en los grupos de la demostración",
  "an average geounit of {0}, and 51 times that state for the nation": "una unidad media de {0}, y 51 veces ese estado para el país", "an invented state of {0} households in {1} blocks": "un estado inventado de {0} hogares en {1} manzanas",
  // What options do.
  "Left out by truncation": "Lo que omite el truncamiento", "Persons beyond τ of a household, among {0}; how many households are crowded is assumed.": "Personas más allá de τ en un hogar, entre {0}; cuántos hogares están hacinados es un supuesto.",
  Table: "Tabla", "Persons left out": "Personas omitidas", "Of all": "De todas", Households: "Hogares", "Which table groups get": "Qué tabla recibe cada grupo", "Groups of": "Grupos de", "Table {0}": "Tabla {0}",
  "Expected numbers of population groups of {0}: from a total alone to the finest table. A group gets the next table from a threshold on.": "Números esperados de grupos de {0}: de un solo total a la tabla más fina. Un grupo recibe la tabla siguiente desde un umbral.",
  "Estimates of totals, all queries together": "Estimaciones de totales, con todas las consultas", Areas: "Áreas", Typical: "Típico", "Nine in ten": "Nueve de diez", exact: "exacto", unknown: "desconocido",
  "Margins of ordinary least squares on the spine chosen, over {0}; where block totals are exact, of a detailed cell.": "Márgenes de mínimos cuadrados en la espina elegida, sobre {0}; donde los totales de manzanas son exactos, de una celda detallada.",
  // Answers.
  "The total is as it was.": "El total queda como estaba.", "Every budget was scaled alike: {0}.": "Todos los presupuestos cambiaron en la misma proporción: {0}.", "Rounded to six decimals, as in 2020: {0}.": "Redondeado a seis decimales, como en 2020: {0}.",
  "For the same total the largest margin falls from {0} to {1}.": "Con el mismo total el mayor margen baja de {0} a {1}.", "With the same largest margin the total falls from {0} to {1}.": "Con el mismo mayor margen el total baja de {0} a {1}.",
  "These budgets are the best already: {0} cannot fall for this total.": "Estos presupuestos ya son los mejores: con este total no se puede bajar {0}.", "For the same total, {0} fall to {1} of before.": "Con el mismo total, {0} bajan al {1} de antes.", "For the same total, {0} falls to {1} of before.": "Con el mismo total, {0} baja al {1} de antes.",
  "the variances of the published counts together": "las varianzas de los recuentos publicados en conjunto", "the largest variance of a published count": "la mayor varianza de un recuento publicado",
  // Faults.
  "must be one of {0}": "debe ser uno de {0}", "must be {0} or {1}": "debe ser {0} o {1}", "must be a whole number": "debe ser un número entero", "must be a whole number above 0": "debe ser un número entero mayor que 0", "must be a whole number, zero or more": "debe ser un número entero, cero o más",
  "must be a whole number from {0} to {1}": "debe ser un número entero de {0} a {1}", "must be a whole number above 0 and at most {0}, the largest FINAL_POP": "debe ser un número entero mayor que 0 y a lo sumo {0}, el mayor FINAL_POP", "must be true or false": "debe ser true o false",
  "must be a number from {0} to {1}": "debe ser un número de {0} a {1}", "must be a number above {0} and below {1}": "debe ser un número mayor que {0} y menor que {1}", "must be a number at least {0} and below {1}": "debe ser un número desde {0} y menor que {1}", "not an exact number such as {0} or Infinity": "no es un número exacto como {0} o Infinity",
  "must be a list of at least {0} thresholds, each a number": "debe ser una lista de al menos {0} umbrales, cada uno un número", "must be a list of {0} threshold, a number": "debe ser una lista de {0} umbral, un número", "must be a list of {0} thresholds, each a number": "debe ser una lista de {0} umbrales, cada uno un número", "thresholds must not descend": "los umbrales no deben bajar",
  "{0} must be a number such as {1}": "{0} debe ser un número como {1}", "{0} must be finite: without noise nobody is protected": "{0} debe ser finito: sin ruido no se protege a nadie", "{0} must be above 0; to leave it out, switch it off": "{0} debe ser mayor que 0; para omitirlo, desactívelo",
  "a margin of error": "un margen de error", "a share": "una parte", "the total": "el total", this: "este valor", "the {0} of this margin, {1},": "el {0} de este margen, {1},", "{0} is out of reach: {1} must be between 1e-15 and 1e15": "{0} está fuera de alcance: {1} debe estar entre 1e-15 y 1e15",
  "no noise has this margin of error: it must be between 1e-15 and 1e15": "ningún ruido tiene este margen de error: debe estar entre 1e-15 y 1e15", "{0} must be between 1e-6 and 1e9": "{0} debe estar entre 1e-6 y 1e9",
  "nothing is switched on, so nothing would be measured: tick a box": "nada está activado, así que nada se mediría: marque una casilla", "must stay below 100 percent, and leave something else switched on": "debe quedar por debajo del 100 por ciento y dejar algo más activado", "nothing of it is switched on": "nada de ello está activado",
  "so large a budget leaves next to no noise to share out": "un presupuesto tan grande casi no deja ruido que repartir", "must be one line of 1 to {0} characters": "debe ser una línea de 1 a {0} caracteres",
  "not a scenario: not JSON at line {0}, column {1}": "no es un escenario: no es JSON en la línea {0}, columna {1}", "not a scenario: nested too deeply": "no es un escenario: demasiado anidado", "not a scenario: it holds a number that is too long": "no es un escenario: tiene un número demasiado largo", "not a scenario: the file is too large": "no es un escenario: el archivo es demasiado grande",
  "not a scenario: a scenario says {0}": "no es un escenario: un escenario dice {0}", "the product must be one of {0}": "el producto debe ser uno de {0}", "the {0} {1} is missing: the file is incomplete, or of another version": "falta {1} ({0}): el archivo está incompleto o es de otra versión", "the {0} {1} is unknown: the file was edited, or is of another version": "{1} ({0}) es desconocido: el archivo fue editado o es de otra versión",
  "settings must be an object with the keys fields and entries": "los ajustes deben ser un objeto con las claves fields y entries", "every {0} must stand under its key in an object": "cada {0} debe estar bajo su clave en un objeto", "must be a text": "debe ser un texto", "must have on (true or false), by ('budget' or 'margin') and value (a text)": "debe tener on (true o false), by ('budget' o 'margin') y value (un texto)", "total and yupana must be texts": "total y yupana deben ser textos", "0.25, 1e-6 or 3/8": "0.25, 1e-6 o 3/8", field: "campo", entry: "entrada",
  "This file has been edited: the marked fields are not usable.": "Este archivo fue editado: los campos marcados no se pueden usar.", "This file was edited, or written by another version: it tells another total than its settings give. What is shown is computed of its settings.": "Este archivo fue editado o es de otra versión: dice otro total que el de sus ajustes. Lo que se muestra se calcula de sus ajustes.",
};

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
/** Sentences that are about something, those with the most words of their own first. */
const sentences = Object.entries(es).filter(([text]) => text.includes("{0}"))
  .sort(([a], [b]) => b.replace(/\{\d\}/g, "").length - a.replace(/\{\d\}/g, "").length)
  .map(([text, found]) => ({ found, like: new RegExp(`^${text.split(/\{\d\}/).map(literal).join("(.+)")}$`, "s") }));
const known = new Map<string, string>();

/** A number as a language writes it. */
export function local(text: string, language: string): string {
  return language === "es" ? text.replace(/[.,](?=\d)/g, (mark) => (mark === "." ? "," : ".")) : text;
}

/** Faults quote numbers as they are typed. */
function spanish(text: string, fault: boolean): string {
  const own = es[text] ?? es[text.charAt(0).toLowerCase() + text.slice(1)];
  if (own !== undefined) return own;
  if (/^[^A-Za-z]*\d[^A-Za-z]*$/.test(text)) return fault ? text : local(text, "es");
  for (const { found, like } of sentences) {
    const match = like.exec(text);
    if (match) return fill(found, ...match.slice(1).map((one) => say(one, fault)));
  }
  // A code or a name before a colon, a comma or a semicolon, and its words.
  for (const mark of ["; ", ": ", ", "]) {
    const at = text.indexOf(mark);
    if (at > 0) return `${say(text.slice(0, at), fault)}${mark}${say(text.slice(at + mark.length), fault)}`;
  }
  return text;
}

function say(text: string, fault: boolean): string {
  const key = `${fault ? "!" : ""}${text}`;
  let found = known.get(key);
  if (found === undefined) {
    if (known.size > 5000) known.clear();
    known.set(key, (found = spanish(text, fault)));
  }
  return found;
}

const TOLD = new Set(["title", "label", "hint", "group", "unit", "counts", "message", "said", "note", "shown", "of", "change", "changes", "guess", "share", "number", "against_release", "tables", "levels", "choices", "columns", "product", "loss", "areas"]);
const KEPT = new Set(["settings", "production", "entries", "groups", "frontier"]);

/** An answer of the server with what it tells in a language; names, settings and numbers in full stay as they are. */
export function tell<T>(answer: T, language: Language): T {
  const walk = (value: unknown, shown: boolean, key = ""): unknown => {
    if (typeof value === "string") return shown ? say(value, key === "message") : value;
    if (Array.isArray(value)) return value.map((one) => walk(one, shown && typeof one === "string", key));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [
      key === "columns" ? say(name, false) : name,
      KEPT.has(name) ? one : walk(one, shown || TOLD.has(name) || (key === "areas" && name === "name") || (key === "attributes" && name === "name"), name),
    ]));
  };
  return language === "en" ? answer : (walk(answer, false) as T);
}
