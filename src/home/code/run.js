// The same as run.py, for JavaScript: standard input has {"code", "input", "root"}, descriptor 3 gets the answer.
const fs = require("fs");
const job = JSON.parse(fs.readFileSync(0, "utf8"));
const answer = { results: [] };
const display = (...values) => {
  for (const value of values)
    answer.results.push({ mime: "text/plain", data: (typeof value === "string" ? value : require("util").inspect(value)).slice(0, 65536) });
};
const AsyncFunction = Object.getPrototypeOf(async function () {}).constructor;

async function perform() {
  const body = `${job.code}\n;return typeof run === "function" ? run : undefined;`;
  const run = await new AsyncFunction("require", "display", body)(require, display);
  if (!run) return;
  const result = await run(job.input);
  answer.result = JSON.parse(JSON.stringify(result === undefined ? null : result));
}

function finish(code) {
  const data = Buffer.from(JSON.stringify({ ...answer, results: answer.results.slice(0, 20) }));
  for (let at = 0; at < data.length; ) at += fs.writeSync(3, data, at);
  process.exitCode = code;
}

perform().then(
  () => finish(0),
  (error) => {
    answer.error = {
      name: String((error && error.name) || "Error"),
      value: String((error && error.message) || error).slice(0, 4096),
      traceback: String((error && error.stack) || error).slice(0, 16384),
    };
    finish(1);
  },
);
