// Asks the server. Every number on the page comes from here; nothing is computed in the browser.

export class Faults extends Error {
  constructor(faults) {
    super(faults.map((f) => f.message).join("; "));
    this.faults = faults;
  }
}

export async function ask(path, body) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Faults([
      { field: "", message: "The explorer does not answer. Start it again in the terminal: yupana explore" },
    ]);
  }
  if (!response.ok) {
    throw new Faults([{ field: "", message: `The explorer could not answer (${response.status}). Please report it.` }]);
  }
  const answer = await response.json();
  if (answer.faults) throw new Faults(answer.faults);
  return answer;
}

export async function get(path) {
  const response = await fetch(path);
  return response.json();
}

export function download({ filename, content }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
