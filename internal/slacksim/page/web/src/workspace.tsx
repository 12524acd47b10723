// The workspace as one person sees it, kept up to date by /sim/events.
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { query, sim, SimError, type Channel, type Group, type Message, type Person, type State, type View } from "./sim";

export interface Seen {
  state: State;
  me: Person;
  /** The channels and direct messages that the person is in. */
  channels: Channel[];
  /** What they see in each, replies and their own ephemeral messages too. */
  messages: Record<string, Message[]>;
  views: View[];
  home?: View;
}

/** Workspace is what every part of the page may know and do. */
export interface Workspace {
  seen: Seen;
  now: Date;
  /** The workspace does not answer: what is on screen may be old. */
  stopped: boolean;
  person(id: string): Person | undefined;
  group(id: string): Group | undefined;
  channel(id: string): Channel | undefined;
  /** say shows a short notice to the person. */
  say(text: string): void;
  /** look reads the workspace again, soon. */
  look(): void;
  open(channel: string): void;
}

const Context = createContext<Workspace | null>(null);
export const WorkspaceProvider = Context.Provider;

export function useWorkspace(): Workspace {
  const workspace = useContext(Context);
  if (!workspace) throw new Error("a part of the page is outside of the workspace");
  return workspace;
}

/** nameOf is what a person is called on the page. */
export const nameOf = (p: Person | undefined, id: string) => p?.real_name || p?.name || id;

/** able lists the people that one can act as. */
export const able = (state: State) => state.people.filter((p) => !p.deleted && !p.is_bot);

/**
 * useSeen reads what a person sees, and again whenever something changed,
 * and says whether the workspace has stopped. A fresh client first forgets
 * what an earlier one of the same person left open.
 */
export function useSeen(user: string, fresh: boolean, fail: (text: string) => void): [Seen | null, () => void, boolean] {
  const [seen, setSeen] = useState<Seen | null>(null);
  const known = useRef(new Map<string, Message>());
  const wanted = useRef(user);
  wanted.current = user;
  const timer = useRef(0);
  const busy = useRef(false);
  const again = useRef(false);
  const forget = useRef(fresh);

  const read = useCallback(async () => {
    if (busy.current) {
      again.current = true;
      return;
    }
    busy.current = true;
    try {
      const next = await readSeen(wanted.current, known.current, forget.current);
      forget.current = false;
      if (next && (next.me.id === wanted.current || next.me.name === wanted.current || !next.state.people.some((p) => p.id === wanted.current))) setSeen(next);
    } catch (e) {
      if (!(e instanceof SimError)) throw e;
      fail(e.message);
    } finally {
      busy.current = false;
      if (again.current) {
        again.current = false;
        look();
      }
    }
  }, []);
  const look = useCallback(() => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => void read(), 25);
  }, []);

  const stopped = useStream(look);
  useEffect(look, [user]);
  return [seen, look, stopped];
}

const patience = 2000; // ms without the stream, after which the workspace counts as stopped

/** useStream hears of changes, connects again for as long as it takes, and says whether it is cut off. */
function useStream(changed: () => void): boolean {
  const [stopped, setStopped] = useState(false);
  useEffect(() => {
    let stream: EventSource;
    let doubt = 0;
    let retry = 0;
    const connect = () => {
      stream = new EventSource("/sim/events");
      stream.onmessage = changed;
      stream.onopen = () => {
        clearTimeout(doubt);
        doubt = 0;
        setStopped(false);
        changed();
      };
      stream.onerror = () => {
        doubt ||= window.setTimeout(() => setStopped(true), patience);
        if (stream.readyState === EventSource.CLOSED) retry = window.setTimeout(connect, patience); // the browser gave up
      };
    };
    connect();
    return () => {
      stream.close();
      clearTimeout(doubt);
      clearTimeout(retry);
    };
  }, []);
  return stopped;
}

async function readSeen(user: string, known: Map<string, Message>, forget: boolean): Promise<Seen> {
  const state = await sim<State>("state");
  const people = able(state);
  const me = people.find((p) => p.id === user || p.name === user) ?? people[0]!;
  if (forget) await sim("reload", { user: me.id });
  const channels = state.channels.filter((c) => c.members.includes(me.id) && !c.is_archived);
  const [views, ...lists] = await Promise.all([
    sim<{ views: View[]; home?: View }>("views" + query({ user: me.id })),
    ...channels.map((c) => sim<{ messages: Message[] }>("messages" + query({ user: me.id, channel: c.id }))),
  ]);
  const messages: Record<string, Message[]> = {};
  channels.forEach((c, i) => { messages[c.id] = lists[i]!.messages.map((m) => same(m, known)); });
  return { state, me, channels, messages, views: views.views, home: views.home };
}

/** same returns the earlier object for a message that did not change, so that it is not drawn again. */
function same(m: Message, known: Map<string, Message>): Message {
  const key = JSON.stringify(m);
  const before = known.get(key);
  if (before) return before;
  known.set(key, m);
  return m;
}

/** useNow is the time, a little late. */
export function useNow(): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 30000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** useLookups finds people, groups and channels by id. */
export function useLookups(seen: Seen | null) {
  return useMemo(() => {
    const by = <T extends { id: string }>(list: T[] | undefined) => {
      const map = new Map((list ?? []).map((x) => [x.id, x]));
      return (id: string) => map.get(id);
    };
    return { person: by(seen?.state.people), group: by(seen?.state.groups), channel: by(seen?.state.channels) };
  }, [seen?.state]);
}
