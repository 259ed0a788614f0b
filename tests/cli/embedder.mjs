// SPDX-License-Identifier: Apache-2.0
// An embedding service that writes one line per request: path, authorization, model, dimensions, number of texts.
// embedder.mjs LOG PORT-FILE [DELAY-MS]
import { createServer } from "node:http";
import { appendFileSync, writeFileSync } from "node:fs";

const [log, portFile, delay = "0"] = process.argv.slice(2);
const server = createServer((req, res) => {
  let body = "";
  req.on("data", (part) => (body += part));
  req.on("end", () => {
    const { model, dimensions, input } = JSON.parse(body);
    const texts = [].concat(input);
    const line = [req.url, req.headers.authorization, model, dimensions, texts.length].join(" ");
    appendFileSync(log, line + "\n");
    const data = texts.map((_, index) => ({ object: "embedding", index, embedding: Array(dimensions ?? 8).fill(0.5) }));
    const answer = JSON.stringify({ object: "list", model, data });
    setTimeout(() => res.writeHead(200, { "content-type": "application/json" }).end(answer), Number(delay));
  });
});
server.listen(0, "127.0.0.1", () => writeFileSync(portFile, String(server.address().port)));
