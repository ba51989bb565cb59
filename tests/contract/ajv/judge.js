// Judges messages by schemas with Ajv in strict mode. A job a line on stdin, an answer a line on stdout:
//   {"schemas": [schema, …], "cases": [["$id", message], …]}  →  {"verdicts": "0110…"} or {"refused": "why"}
import { createInterface } from "node:readline";
import Ajv2020 from "ajv/dist/2020.js";

const MARKS = ["x-provenance", "x-requirement", "x-content-class", "x-large-metadata"];

function compiled(schemas) {
  const ajv = new Ajv2020.default({ strict: true });
  ajv.addVocabulary(MARKS);
  ajv.addSchema(schemas);
  return new Map(schemas.map(({ $id }) => [$id, ajv.getSchema($id)]));
}

function answer({ schemas, cases }) {
  let validators;
  try {
    validators = compiled(schemas);
  } catch (error) {
    return { refused: error.message };
  }
  return { verdicts: cases.map(([id, message]) => (validators.get(id)(message) ? "1" : "0")).join("") };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}
