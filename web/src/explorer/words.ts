/** All words of the explorer, in each language. */
const en = {
  locale: "en", title: "Explorer of budgets", question: "How much noise should {0} carry?", protects: "What is protected is one {0}.",
  configuration: "Configuration", name: "Name of this scenario", mine: "My scenario", undo: "Undo", start: "Start over",
  link: "Copy link", copied: "Link copied", file: "Files", save: "Save scenario", load: "Load scenario", config: "Export configuration",
  csv: "Export CSV", print: "Print", total: "Total loss", budget: "budget", margin: "margin of error", share: "share, percent",
  every: "all margins", of: "of", group: "Group by", table: "table", level: "level", measure: "Measure {0}", open: "{0} budgets of {1}",
  options: "Assumptions and options", effects: "What follows", guess: "Guess about one {0}, right at most",
  coin: "a coin: 50%", certain: "next to no protection",
  attacker: "Whoever sees the release, knows everything else and thinks it as likely as not that {0}, guesses right at most {1} of the time.",
  unreliable: "Unreliable counts", reliable: "all counts are reliable", frontier: "Total loss against error",
  yRelative: "largest margin of a typical count", yCounts: "largest margin of error, in records", here: "this scenario",
  possible: "the least possible", began: "start", asIn2020: "as in 2020", beganAsIn2020: "start, as in 2020", solve: "Find better budgets", equal: "Same total, smallest error", least: "Same error, smallest total",
  sum: "Same total, least variance", max: "Same total, least worst variance", round: "Round to six decimals",
  solveHint: "Each answer replaces the budgets on the left; Undo takes it back.", tables: "Tables and levels", areas: "Areas",
  isUnreliable: "A count is unreliable where its margin is above {0}% of it.", newly: "Unreliable, and not so at the start: {0}.",
  none: "None of the counts known is unreliable.", noCounts: "No counts are at hand here. A count is reliable from these on:",
  counts: "Counts of {0}.", reliableFrom: "reliable from", columns: "Scenarios side by side", keep: "Keep this scenario as a column",
  take: "Take", remove: "Remove", changes: "Changes are from this scenario.", more: "Show all {0} rows", difference: "Every budget that is not the same in all",
  attributes: "What is lost of one attribute", attribute: "Attribute", loss: "loss", rightAtMost: "guess right at most", losses: "Losses of all kinds",
  waiting: "being computed", correct: "Correct the marked field, and the numbers return.", gone: "The explorer does not answer. Start it again in the terminal: yupana explore",
  lost: "{0} settings of this link are of another version and were left out.", noPage: "There is no such configuration here: {0}.", version: "Version {0}. It runs on this machine alone and reads plans, never records.",
  unnamed: "Give the scenario a name first.", full: "Five scenarios of your own are the most; remove one.", exactEpsilon: "Total ε at δ, exact", set: "Set", notRelease: "Not for release: {0}",
  language: "Español", typical: "typical count", goto: "Go to it", change: "change", rho: "ρ grows with every count that is measured; ε is the same loss on the usual scale.", off: "off",
};
export type Words = typeof en;
const es: Words = {
  locale: "es", title: "Explorador de presupuestos", question: "¿Cuánto ruido debe llevar {0}?", protects: "Lo que se protege es cada {0}.",
  configuration: "Configuración", name: "Nombre de este escenario", mine: "Mi escenario", undo: "Deshacer", start: "Reiniciar",
  link: "Copiar enlace", copied: "Enlace copiado", file: "Archivos", save: "Guardar escenario", load: "Cargar escenario", config: "Exportar configuración",
  csv: "Exportar CSV", print: "Imprimir", total: "Pérdida total", budget: "presupuesto", margin: "margen de error", share: "parte, por ciento",
  every: "todos los márgenes", of: "de", group: "Agrupar por", table: "tabla", level: "nivel", measure: "Medir {0}", open: "{0} presupuestos de {1}",
  options: "Supuestos y opciones", effects: "Qué resulta", guess: "Conjetura sobre {0}, acierta a lo sumo",
  coin: "una moneda: 50%", certain: "casi ninguna protección",
  attacker: "Quien ve la publicación, sabe todo lo demás y cree igual de probable que no que {0}, acierta a lo sumo el {1} de las veces.",
  unreliable: "Recuentos poco fiables", reliable: "todos los recuentos son fiables", frontier: "Pérdida total frente a error",
  yRelative: "mayor margen de un recuento típico", yCounts: "mayor margen de error, en registros", here: "este escenario",
  possible: "lo mínimo posible", began: "comienzo", asIn2020: "como en 2020", beganAsIn2020: "comienzo, como en 2020", solve: "Buscar mejores presupuestos", equal: "Igual total, menor error", least: "Igual error, menor total",
  sum: "Igual total, menor varianza", max: "Igual total, menor varianza peor", round: "Redondear a seis decimales",
  solveHint: "Cada respuesta reemplaza los presupuestos; Deshacer la retira.", tables: "Tablas y niveles", areas: "Áreas",
  isUnreliable: "Un recuento es poco fiable si su margen supera el {0}% de él.", newly: "Poco fiables, y no al comienzo: {0}.",
  none: "Ninguno de los recuentos conocidos es poco fiable.", noCounts: "No hay recuentos a mano. Un recuento es fiable a partir de:",
  counts: "Recuentos de {0}.", reliableFrom: "fiable desde", columns: "Escenarios lado a lado", keep: "Guardar este escenario como columna",
  take: "Tomar", remove: "Quitar", changes: "Los cambios son respecto de este escenario.", more: "Mostrar las {0} filas", difference: "Cada presupuesto que no es igual en todos",
  attributes: "Qué se pierde de un atributo", attribute: "Atributo", loss: "pérdida", rightAtMost: "acierta a lo sumo", losses: "Pérdidas de todo tipo",
  waiting: "se está calculando", correct: "Corrija el campo marcado y los números vuelven.", gone: "El explorador no responde. Inícielo de nuevo en la terminal: yupana explore",
  lost: "{0} valores de este enlace son de otra versión y se omitieron.", noPage: "Aquí no hay tal configuración: {0}.", version: "Versión {0}. Funciona solo en esta máquina y lee planes, nunca registros.",
  unnamed: "Primero dé un nombre al escenario.", full: "Cinco escenarios propios son el máximo; quite uno.", exactEpsilon: "ε total en δ, exacto", set: "Fijar", notRelease: "No publicar: {0}",
  language: "English", typical: "recuento típico", goto: "Ir a él", change: "cambio", rho: "ρ crece con cada recuento que se mide; ε es la misma pérdida en la escala usual.", off: "sin medir",
};
export const languages = { en, es };
export type Language = keyof typeof languages;

export function fill(text: string, ...parts: string[]): string {
  return text.replace(/\{(\d)\}/g, (_, at) => parts[Number(at)] ?? "");
}
