import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, formatDate, near } from "../src/dates";

const now = new Date("2026-03-04T12:00:00Z");
const at = Date.parse("2026-03-04T23:30:05Z") / 1000;
const say = (format: string, zone: string) => formatDate(at, format, "fallback", now, zone);

const cases: [format: string, zone: string, want: string][] = [
  ["{date_num} {date_slash}", "UTC", "2026-03-04 03/04/2026"],
  ["{date_num}", "Europe/Berlin", "2026-03-05"],
  ["{date} · {date_short} · {date_long}", "UTC", "March 4th, 2026 · Mar 4, 2026 · Wednesday, March 4th, 2026"],
  ["{date_pretty} {date_short_pretty} {date_long_pretty}", "UTC", "today today today"],
  ["{date_short_pretty} at {time}", "Europe/Berlin", "tomorrow at 12:30 AM"],
  ["{time} {time_secs}", "America/New_York", "6:30 PM 6:30:05 PM"],
  ["{ago}", "UTC", "in 12 hours"],
  ["{date_num} {no_such}", "UTC", "2026-03-04 {no_such}"],
  ["{no_such}", "UTC", "fallback"],
];
for (const [format, zone, want] of cases) test(`${format} in ${zone}`, () => assert.equal(say(format, zone).replaceAll("\u202f", " "), want));

test("what is no time is its fallback", () => assert.equal(formatDate(NaN, "{date}", "soon", now), "soon"));
test("days are those of the zone", () => {
  assert.equal(near(new Date("2026-03-03T23:30:00Z"), now, "UTC"), "yesterday");
  assert.equal(near(new Date("2026-03-03T23:30:00Z"), now, "Europe/Berlin"), "today");
  assert.equal(near(new Date("2026-03-09T00:00:00Z"), now, "UTC"), undefined);
});
test("times from now", () => {
  assert.equal(ago(new Date(now.getTime() - 20000), now), "just now");
  assert.equal(ago(new Date(now.getTime() - 5 * 60000), now), "5 minutes ago");
});
