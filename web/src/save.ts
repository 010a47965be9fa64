/** Saves what is seen as a file. */
export function saveCsv(name: string, header: string[], rows: (string | number)[][]): void {
  const field = (value: string | number) => {
    const text = Number.isNaN(value) ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const text = [header, ...rows].map((row) => row.map(field).join(",")).join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`\ufeff${text}\r\n`], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
