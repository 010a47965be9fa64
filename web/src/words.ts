/** All words of the pages, in each language. */

const en = {
  search: "Find a table, an area or a group",
  tables: "Tables", areas: "Areas", groups: "Groups", about: "About this release", none: "Nothing is called so.",
  area: "Area", group: "Group", compare: "Compare areas", read: "Read the table", estimate: "Count", margin: "Margin of error",
  interval: "Interval", chosen: "Chosen rows", clear: "Clear", sum: "Sum", difference: "Difference", ratio: "Ratio", share: "Share",
  choose: "Choose rows to add them up or compare them.", save: "Save as CSV", link: "Copy link", copied: "Copied",
  of: "of", all: "All", cell: "Row", suppressed: "left out", loading: "Loading", noRows: "There is no row of this area and group.",
  danger: "Not for release", public: "For publication", loss: "What is lost", made: "How it was made", cite: "How to cite",
  open: "What is not protected", more: "Show more", rows: "rows", language: "Español", theme: "Colours",
  confidence: "Intervals hold the tabulated count with a chance of {0}.", sorted: "Sorted by count", byName: "By name",
  legend: "The darker, the more. Point at an area for its name.", unsure: "may be 0",
};
type Words = typeof en;
const es: Words = {
  search: "Busque una tabla, un área o un grupo",
  tables: "Tablas", areas: "Áreas", groups: "Grupos", about: "Sobre esta publicación", none: "Nada se llama así.",
  area: "Área", group: "Grupo", compare: "Comparar áreas", read: "Leer la tabla", estimate: "Recuento", margin: "Margen de error",
  interval: "Intervalo", chosen: "Filas elegidas", clear: "Borrar", sum: "Suma", difference: "Diferencia", ratio: "Razón", share: "Porcentaje",
  choose: "Elija filas para sumarlas o compararlas.", save: "Guardar como CSV", link: "Copiar enlace", copied: "Copiado",
  of: "de", all: "Todas", cell: "Fila", suppressed: "omitido", loading: "Cargando", noRows: "No hay ninguna fila de esta área y este grupo.",
  danger: "No publicar", public: "Para publicación", loss: "Qué se pierde", made: "Cómo se hizo", cite: "Cómo citar",
  open: "Qué no se protege", more: "Mostrar más", rows: "filas", language: "English", theme: "Colores",
  confidence: "Los intervalos contienen el recuento tabulado con una probabilidad de {0}.", sorted: "Por recuento", byName: "Por nombre",
  legend: "Cuanto más oscuro, más. Señale un área para ver su nombre.", unsure: "puede ser 0",
};
export const languages = { en, es };
export type Language = keyof typeof languages;
export type { Words };
