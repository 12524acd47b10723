// Dates as <!date^…> and rich text show them, in a person's time zone.

const ordinal = (n: number) => n + (n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] ?? "th");

interface Parts { year: string; month: string; day: string }

function parts(at: Date, timeZone?: string): Parts {
  const found: Record<string, string> = {};
  for (const p of new Intl.DateTimeFormat("en", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(at)) found[p.type] = p.value;
  return found as unknown as Parts;
}

/** dayOf is the calendar day as 2026-03-04. */
export function dayOf(at: Date, timeZone?: string): string {
  const p = parts(at, timeZone);
  return `${p.year}-${p.month}-${p.day}`;
}

const days = (day: string) => Date.parse(day + "T00:00:00Z") / 86400000;

/** near says today, yesterday or tomorrow, if it is one of them. */
export function near(at: Date, now: Date, timeZone?: string): string | undefined {
  const away = days(dayOf(at, timeZone)) - days(dayOf(now, timeZone));
  return ({ "-1": "yesterday", 0: "today", 1: "tomorrow" } as Record<string, string>)[String(away)];
}

/** clock is the time of day. */
export function clock(at: Date, timeZone?: string, seconds = false): string {
  return at.toLocaleTimeString("en", { timeZone, hour: "numeric", minute: "2-digit", second: seconds ? "2-digit" : undefined });
}

/** ago is how far a time is from now, in words. */
export function ago(at: Date, now: Date): string {
  const minutes = Math.round((at.getTime() - now.getTime()) / 60000);
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  if (minutes === 0) return "just now";
  if (Math.abs(minutes) < 60) return words.format(minutes, "minute");
  if (Math.abs(minutes) < 1440) return words.format(Math.round(minutes / 60), "hour");
  return words.format(Math.round(minutes / 1440), "day");
}

/** formatDate fills in Slack's date tokens; what is no token stays. */
export function formatDate(timestamp: number, format: string, fallback: string, now: Date, timeZone?: string): string {
  const at = new Date(timestamp * 1000);
  if (Number.isNaN(at.getTime())) return fallback;
  const p = parts(at, timeZone);
  const name = (options: Intl.DateTimeFormatOptions) => at.toLocaleDateString("en", { timeZone, ...options });
  const long = `${name({ month: "long" })} ${ordinal(Number(p.day))}, ${p.year}`;
  const tokens: Record<string, string> = {
    date_num: `${p.year}-${p.month}-${p.day}`,
    date_slash: `${p.month}/${p.day}/${p.year}`,
    date: long,
    date_short: `${name({ month: "short" })} ${Number(p.day)}, ${p.year}`,
    date_long: `${name({ weekday: "long" })}, ${long}`,
    time: clock(at, timeZone),
    time_secs: clock(at, timeZone, true),
    ago: ago(at, now),
  };
  const shown = near(at, now, timeZone);
  for (const kind of ["date", "date_short", "date_long"]) tokens[kind + "_pretty"] = shown ?? tokens[kind]!;
  const known = /\{([a-z_]+)\}/g;
  let any = false;
  const text = format.replace(known, (all, token: string) => {
    any ||= token in tokens;
    return tokens[token] ?? all;
  });
  return any ? text : fallback || text;
}
