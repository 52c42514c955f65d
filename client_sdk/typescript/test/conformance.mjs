/** Answers requests on standard input, one a line each: the port that Python compares with. */

import { createInterface } from "node:readline";

import { answerer } from "./support/answers.mjs";
import * as client from "./support/client.mjs";

const answer = answerer(client);

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}
