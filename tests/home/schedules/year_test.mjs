// SPDX-License-Identifier: Apache-2.0
// A year of schedules in twelve zones, with changes of the clocks, a leap day, restarts and a clock that is set forth and back: what
// runs is what two others say, each due time once: croner, and cron's rules applied to the zones of Temporal. STEAD_YEAR=full adds
// further schedules, and the other policies in every zone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { main, test } from "../../peers/peer.mjs";

const load = createRequire(process.env.PEERS + "/package.json");
const { Cron } = load("croner");
const { Temporal } = load("@js-temporal/polyfill");

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

// The stretches of time between two changes of the clocks: {begins, ends, offset}, in seconds.
function stretches(zone) {
  const list = [];
  for (let at = Temporal.Instant.fromEpochMilliseconds(from * 1000).toZonedDateTimeISO(zone); at.epochMilliseconds <= to * 1000;) {
    const next = at.getTimeZoneTransition("next");
    list.push({ begins: at.epochMilliseconds / 1000, ends: next ? next.epochMilliseconds / 1000 : Infinity, offset: at.offsetNanoseconds / 1e9 });
    if (!next) break;
    at = next;
  }
  return list;
}

// The numbers of a field; only what the expressions below use.
function numbers(text, most) {
  const [, range, step] = /^([^/]*)(?:\/(\d+))?$/.exec(text);
  const [a, b] = range === "*" ? [0, most] : range.split("-").map(Number);
  return new Set(Array.from({ length: most + 1 }, (_, n) => n).filter((n) => n >= a && n <= (b ?? a) && (n - a) % (step ?? 1) === 0));
}

// cron(8) over Temporal: every minute of the year is looked at as the clock on the wall shows it.
function temporals(zone, expression) {
  const [minute, hour, day, month, weekday] = expression.split(" ").map((field, i) => numbers(field, [59, 23, 31, 12, 7][i]));
  const isInterval = /^\*| \*/.test(expression.split(" ").slice(0, 2).join(" "));
  const matches = (wall) => {
    const t = new Date(wall * 1000); // the fields of UTC are those of the wall
    return minute.has(t.getUTCMinutes()) && hour.has(t.getUTCHours()) && day.has(t.getUTCDate()) && month.has(t.getUTCMonth() + 1) &&
      (weekday.has(t.getUTCDay()) || (t.getUTCDay() === 0 && weekday.has(7)));
  };
  const times = new Set();
  let seen = -Infinity; // the latest minute of the wall that has passed
  for (const { begins, ends, offset } of stretches(zone)) {
    if (!isInterval && seen > -Infinity) // the skipped minutes run at the change
      for (let wall = seen + 60; wall < begins + offset; wall += 60) if (matches(wall)) times.add(begins);
    for (let at = Math.ceil((begins + offset) / 60) * 60 - offset; at < ends && at <= to; at += 60) {
      const wall = at + offset;
      if ((isInterval || wall > seen) && matches(wall) && at > from) times.add(at);
      seen = Math.max(seen, wall);
    }
  }
  return [...times].sort((a, b) => a - b);
}

const expressions = full ? ["30 2 * * *", "0 0 29 2 *", "0 9 * * 1-5", "15 * * * *", "*/20 * * * *"] : ["30 2 * * *", "0 0 29 2 *"];
let fired = 0, restarts = 0, jumps = 0;

for (const [number, zone] of zones.entries())
  test(`a year in ${zone}: each due time once`, async () => {
    for (const expression of expressions) {
      const wanted = theirs(zone, expression);
      assert.deepEqual(wanted, temporals(zone, expression), `${expression}: the two others differ`);
      const all = live(zone, expression, "all", number);
      assert.deepEqual(all.fired, wanted, `${expression}: not the due times of the other implementation`);
      assert.equal(all.missed, 0);
      for (const policy of full || number < 2 ? ["once", "skip"] : []) {
        const some = live(zone, expression, policy, number + 100);
        const known = new Set(wanted);
        assert.equal(new Set(some.fired).size, some.fired.length, `${expression}, ${policy}: a due time ran twice`);
        assert.ok(some.fired.every((at) => known.has(at)), `${expression}, ${policy}: a time that is not due`);
        assert.equal(some.fired.length + some.missed, wanted.length, `${expression}, ${policy}: not every due time ran or was recorded as missed`);
      }
      fired += all.fired.length, restarts += all.restarts, jumps += all.jumps;
    }
  });

test("the year had restarts and jumps of the clock", async () => {
  console.log(`# ${fired} due times, ${restarts} restarts, ${jumps} jumps`);
  assert.ok(fired && restarts && jumps);
});

await main();
