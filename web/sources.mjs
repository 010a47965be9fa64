/** Records which sources the built pages of the atlas are of: SHA-256 of names and contents, in order. */
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const hash = createHash("sha256");
for (const name of readdirSync("src").filter((one) => /\.(ts|tsx|css)$/.test(one)).sort()) hash.update(`${name}\0`).update(readFileSync(`src/${name}`)).update("\0");
writeFileSync("../src/yupana/atlas/static/sources.sha256", `${hash.digest("hex")}\n`);
