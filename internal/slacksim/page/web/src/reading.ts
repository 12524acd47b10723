// What each person has read, kept while the page is open.
import { useEffect, useMemo, useRef, useState } from "react";
import type { Message } from "./sim";
import type { Seen } from "./workspace";

const read = new Map<string, string>(); // by person and channel or thread root: the last ts read

const isReply = (m: Message) => m.thread_ts !== undefined && m.thread_ts !== m.ts && m.subtype !== "thread_broadcast";

function mentions(m: Message, seen: Seen): boolean {
  const text = JSON.stringify([m.text, m.blocks ?? []]);
  return [seen.me.id, ...seen.state.groups.filter((g) => g.users.includes(seen.me.id)).map((g) => g.id)].some((id) => text.includes(id));
}

export interface News { any: boolean; mentions: number }

/** useReading marks the open place as read and says what else is new. */
export function useReading(seen: Seen, channel: string, thread: string | undefined, home: boolean) {
  const [, redraw] = useState(0);
  const key = (place: string) => seen.me.id + "/" + place;
  const list = seen.messages[channel] ?? [];

  // The mark of what was new stands as long as the person stays.
  const mark = useRef<{ place: string; after: string | undefined }>({ place: "", after: undefined });
  const place = key(channel) + home;
  if (mark.current.place !== place) mark.current = { place, after: read.get(key(channel)) };

  useEffect(() => {
    let changed = false;
    const set = (what: string, ts: string | undefined) => {
      if (ts !== undefined && (read.get(what) ?? "") < ts) { read.set(what, ts); changed = true; }
    };
    if (!home) set(key(channel), list.findLast((m) => !isReply(m))?.ts);
    if (thread) set(key(thread), list.findLast((m) => m.thread_ts === thread || m.ts === thread)?.ts);
    if (changed) redraw((n) => n + 1);
  }, [list, thread, home, seen.me.id]);

  return useMemo(() => {
    const freshThread = (root: string) => (seen.messages[channel] ?? []).some((m) => isReply(m) && m.thread_ts === root && m.user !== seen.me.id && m.ts > (read.get(key(root)) ?? ""));
    const unread: Record<string, News> = {};
    for (const c of seen.channels) {
      const fresh = (seen.messages[c.id] ?? []).filter((m) => m.user !== seen.me.id && m.ts > (read.get(key(isReply(m) ? m.thread_ts! : c.id)) ?? ""));
      unread[c.id] = { any: fresh.length > 0, mentions: c.is_im ? fresh.length : fresh.filter((m) => mentions(m, seen)).length };
    }
    return { unread, unreadAfter: mark.current.after, freshThread };
  }, [seen, channel, thread, home, [...read.values()].join()]);
}

/** splitThreads parts what stands in a channel from the replies to it. */
export function splitThreads(list: Message[]) {
  const top: Message[] = [];
  const replies = new Map<string, Message[]>();
  for (const m of list) {
    if (isReply(m)) replies.set(m.thread_ts!, [...(replies.get(m.thread_ts!) ?? []), m]);
    if (!isReply(m)) top.push(m);
  }
  return { top, replies };
}
