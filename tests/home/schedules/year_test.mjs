// SPDX-License-Identifier: Apache-2.0
// A year of schedules in twelve zones, with changes of the clocks, a leap day, restarts and a clock that is set forth and back: what
// runs is what another implementation of cron says, each due time once. STEAD_YEAR=full adds further
// schedules, and the other policies in every zone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { main, test } from "../../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { Cron } = load("croner");

const zones = ["America/New_York", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Australia/Lord_Howe", "Australia/Sydney",
  "Africa/Cairo", "America/Havana", "Asia/Beirut", "America/St_Johns", "Asia/Kathmandu", "UTC"];
const from = Date.parse("2027-06-01T00:00:00Z") / 1000, to = Date.parse("2028-06-01T00:00:00Z") / 1000; // with 29 February 2028
const full = process.env.STEAD_YEAR === "full";
const seed = Number(process.env.STEAD_TEST_SEED ?? 20281);

function live(zone, expression, policy, number) {
  const dir = mkdtempSync(join(tmpdir(), "stead-year-"));
  try {
    return JSON.parse(execFileSync(process.env.YEAR_SIM, [zone, expression, policy, `${from}`, `${to}`, `${seed + number}`, dir], { maxBuffer: 1 << 26 }));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function theirs(zone, expression) {
  const job = new Cron(expression, { timezone: zone, paused: true }), times = [];
  for (let at = job.nextRun(new Date(from * 1000)); at && at.getTime() / 1000 <= to; at = job.nextRun(at)) times.push(at.getTime() / 1000);
  return times;
}

const expressions = full ? ["30 2 * * *", "0 0 29 2 *", "0 9 * * 1-5", "15 * * * *", "*/20 * * * *"] : ["30 2 * * *", "0 0 29 2 *"];
let fired = 0, restarts = 0, jumps = 0;

for (const [number, zone] of zones.entries())
  test(`a year in ${zone}: each due time once`, async () => {
    for (const expression of expressions) {
      const wanted = theirs(zone, expression);
      const all = live(zone, expression, "all", number);
      assert.deepEqual(all.fired, wanted, `${expression}: not the due times of the other implementation`);
      assert.equal(all.missed, 0);
      for (const policy of full || number < 2 ? ["once", "skip"] : []) {
        const some = live(zone, expression, policy, number + 100);
        const known = new Set(wanted);
        assert.equal(new Set(some.fired).size, some.fired.length, `${expression}, ${policy}: a due time ran twice`);
        assert.ok(some.fired.every((at) => known.has(at)), `${expression}, ${policy}: a time that is not due`);
        // Of one long rest only the first hundred that were missed are counted.
        const frequent = expression.startsWith("*/"), sum = some.fired.length + some.missed;
        assert.ok(frequent ? sum <= wanted.length && sum > 0.9 * wanted.length : sum === wanted.length, `${expression}, ${policy}: ${sum} of ${wanted.length} ran or were recorded as missed`);
      }
      fired += all.fired.length, restarts += all.restarts, jumps += all.jumps;
    }
  });

test("the year had restarts and jumps of the clock", async () => {
  console.log(`# ${fired} due times, ${restarts} restarts, ${jumps} jumps`);
  assert.ok(fired && restarts && jumps);
});

await main();
