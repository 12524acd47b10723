// What the page knows of /sim/, the control API. slacksim's doc.go
// describes it.

export interface Person { id: string; name: string; real_name: string; tz?: string; is_restricted?: boolean; deleted?: boolean; is_bot?: boolean }
export interface Channel { id: string; name: string; members: string[]; is_private?: boolean; is_archived?: boolean; is_im?: boolean; is_mpim?: boolean }
export interface Group { id: string; handle: string; name: string; users: string[]; disabled?: boolean }

export interface State {
  team: string;
  bot: Person;
  people: Person[];
  channels: Channel[];
  groups: Group[];
  suggestions: string[];
  commands?: string[];
  /** What the app offers in the menu of a message. */
  shortcuts?: { callback_id: string; name: string }[];
  /** The tabs that the app has; a workspace that does not say so has both. */
  home?: boolean;
  messages?: boolean;
  now: number;
}

/** Json is a Block Kit object, which the workspace has checked. */
export type Json = { [name: string]: any };

export interface Message {
  channel: string;
  ts: string;
  thread_ts?: string;
  user: string;
  bot_id?: string;
  subtype?: string;
  username?: string;
  text: string;
  blocks?: Json[];
  attachments?: Json[];
  edited?: boolean;
  is_ephemeral?: boolean;
  reply_count?: number;
  reactions?: { name: string; count: number; users: string[] }[];
}

export type Values = Record<string, Record<string, Json>>;

export interface View {
  id: string;
  type: string;
  title?: string;
  submit?: string;
  close?: string;
  blocks: Json[];
  values?: Values;
  errors?: Record<string, string>;
  hash: string;
}

export interface ClickOutcome { visible_error?: string; url?: string }
export interface Suggestions { options?: Json[]; option_groups?: Json[]; visible_error?: string }
export interface SubmitOutcome { closed?: boolean; errors?: Record<string, string>; visible_error?: string }
export interface CommandOutcome { visible_error?: string }

export interface LogEntry {
  seq: number;
  at: string;
  direction: "from_app" | "to_app";
  kind: string;
  method: string;
  url: string;
  headers?: Record<string, string>;
  request: string;
  status?: number;
  response?: string;
  problem?: string;
}

export interface InspectionEvent { at: string; run: string; what: string; detail: string; tone?: "good" | "bad" | "wait" }
export interface InspectionDocument { key: string; type: string; bytes: number; value: string }
export interface Inspection { timeline: InspectionEvent[]; documents: InspectionDocument[]; omitted?: number }

/** SimError is what the workspace says about something that cannot be done. */
export class SimError extends Error {
  constructor(message: string, readonly status = 0) {
    super(message);
  }
}

/** sim calls the control API: GET without a body, POST with one. */
export async function sim<T>(path: string, body?: object): Promise<T> {
  let response: Response;
  try {
    response = await fetch("/sim/" + path, body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new SimError("The workspace does not answer. Is it still running?");
  }
  const answer = (await response.json().catch(() => ({ error: "The workspace gave an answer that is not JSON." }))) as T & { error?: string };
  if (!response.ok) throw new SimError(answer.error ?? "The workspace refused.", response.status);
  return answer;
}

/** query writes parameters, leaving out those without a value. */
export function query(parameters: Record<string, string | undefined>): string {
  const set = Object.entries(parameters).filter((p): p is [string, string] => p[1] !== undefined);
  return "?" + new URLSearchParams(set).toString();
}
