// What the elements of a message or view need from where they stand.
import { createContext, useContext } from "react";
import type { ClickOutcome, Json, Suggestions, Values } from "./sim";

export type Entered = string | string[];

export interface Surface {
  /** act tells the app that an element was used, and returns what the person saw. */
  act(block: Json, element: Json, value?: Entered): Promise<ClickOutcome>;
  /** suggest asks the app for the options of a menu that it loads. */
  suggest(block: Json, element: Json, typed: string): Promise<Suggestions>;
  /** enter keeps what was entered into an input of a view. */
  enter?(block: Json, element: Json, value: Entered): void;
  entered?(block: Json, element: Json): Entered | undefined;
  values?: Values;
  errors?: Record<string, string>;
  /** An id that no other surface on the page has. */
  id: string;
}

const Context = createContext<Surface | null>(null);
export const SurfaceProvider = Context.Provider;

export function useSurface(): Surface {
  const surface = useContext(Context);
  if (!surface) throw new Error("a block is outside of a message or view");
  return surface;
}

/** held is what an element holds by the app's preset or the workspace's state. */
export function held(element: Json, state: Json | undefined): Entered {
  const s = state ?? {
    selected_options: element.initial_options, selected_option: element.initial_option, value: element.initial_value,
    selected_users: element.initial_users, selected_conversations: element.initial_conversations, selected_channels: element.initial_channels,
    selected_user: element.initial_user, selected_conversation: element.initial_conversation, selected_channel: element.initial_channel,
    selected_date: element.initial_date, selected_time: element.initial_time, selected_date_time: element.initial_date_time,
  };
  if (s.selected_options) return s.selected_options.map((o: Json) => o.value);
  for (const name of ["selected_users", "selected_conversations", "selected_channels"]) if (s[name]) return s[name];
  const rich = s.rich_text_value ?? (s.value && typeof s.value === "object" ? s.value : undefined);
  if (rich) return rich.elements.flatMap((e: Json) => (e.elements ?? []).map((p: Json) => p.text ?? "")).join("");
  return String(s.value ?? s.selected_option?.value ?? s.selected_user ?? s.selected_conversation ?? s.selected_channel ??
    s.selected_date ?? s.selected_time ?? s.selected_date_time ?? "");
}
