// SPDX-License-Identifier: Apache-2.0
// What the tests with outside clients share: one TAP line per test, a fresh workspace for each, and the command that
// starts the server. STEAD is the program; each test has its own store directory.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const tests = [];

// run(server, dir, signal): `signal` is aborted when the test has taken `seconds`.
export function test(name, run, seconds = 100) {
  tests.push({ name, run, seconds });
}

export async function main() {
  let failed = 0;
  for (const [i, { name, run, seconds }] of tests.entries()) {
    const dir = mkdtempSync(join(tmpdir(), "stead-peer-"));
    const server = {
      command: process.env.STEAD,
      args: ["mcp", "--structured", "--tools", "all", "--store", `disk:${join(dir, "store")}`, "--workspace", "peer"],
      stderr: "pipe",
    };
    const abort = new AbortController();
    let timer;
    try {
      const late = new Promise((_, no) => {
        timer = setTimeout(() => no(new Error(`took longer than ${seconds} s`)), seconds * 1000);
      });
      await Promise.race([run(server, dir, abort.signal), late]);
      console.log(`ok ${i + 1} - ${name}`);
    } catch (e) {
      failed++;
      console.log(`# ${String(e.stack).replaceAll("\n", "\n# ")}`);
      console.log(`not ok ${i + 1} - ${name}`);
    } finally {
      clearTimeout(timer);
      abort.abort();
      rmSync(dir, { recursive: true, force: true });
    }
  }
  console.log(`1..${tests.length}`);
  process.exit(failed ? 1 : 0);
}

// Resolves with the first value that `arm` hands to its callback.
export function once(arm) {
  return new Promise((yes) => arm(yes));
}
