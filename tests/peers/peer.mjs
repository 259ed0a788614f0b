// SPDX-License-Identifier: Apache-2.0
// What the tests with outside clients share: one TAP line per test, a fresh workspace for each, and the command that
// starts the server. STEAD is the program; each test has its own store directory.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const tests = [];

export function test(name, run) {
  tests.push({ name, run });
}

export async function main() {
  let failed = 0;
  for (const [i, { name, run }] of tests.entries()) {
    const dir = mkdtempSync(join(tmpdir(), "stead-peer-"));
    const server = {
      command: process.env.STEAD,
      args: ["mcp", "--store", `disk:${join(dir, "store")}`, "--workspace", "peer"],
      stderr: "pipe",
    };
    let timer;
    try {
      const late = new Promise((_, no) => {
        timer = setTimeout(() => no(new Error("took longer than 30 s")), 30000);
      });
      await Promise.race([run(server, dir), late]);
      console.log(`ok ${i + 1} - ${name}`);
    } catch (e) {
      failed++;
      console.log(`# ${String(e.stack).replaceAll("\n", "\n# ")}`);
      console.log(`not ok ${i + 1} - ${name}`);
    } finally {
      clearTimeout(timer);
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
