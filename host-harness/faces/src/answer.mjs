// Answers queries of the core, one a line, with the package whose entry is named.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { compile, query, review, validate } = await import(pathToFileURL(process.argv[2]));
const functions = { compile, review, validate };

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const question = JSON.parse(line);
    const [name] = Object.keys(question);
    answer = { answer: name in functions ? functions[name](question[name]) : query(question) };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
