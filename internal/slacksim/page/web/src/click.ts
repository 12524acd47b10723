import { useCallback } from "react";
import { sim, type ClickOutcome, type Json, type Suggestions } from "./sim";
import type { Entered } from "./surface";
import { useWorkspace } from "./workspace";

/** useClick uses elements of one message or view as the person. Confirm dialogs came before. */
export function useClick(target: { channel?: string; ts?: string; view_id?: string }) {
  const { seen, look, say } = useWorkspace();
  const { channel, ts, view_id } = target;
  return useCallback(async (block: Json, element: Json, value?: Entered): Promise<ClickOutcome> => {
    try {
      return await sim<ClickOutcome>("click", { channel, ts, view_id, user: seen.me.id, action_id: element.action_id, block_id: block.block_id, value, confirmed: true });
    } catch (e) {
      if (view_id) return { visible_error: (e as Error).message }; // a notice would be behind the modal
      say((e as Error).message);
      return {};
    } finally {
      look();
    }
  }, [seen.me.id, channel, ts, view_id]);
}

/** useSuggest asks the app for the options of a menu of one message or view. */
export function useSuggest(target: { channel?: string; ts?: string; view_id?: string }) {
  const { seen } = useWorkspace();
  const { channel, ts, view_id } = target;
  return useCallback((block: Json, element: Json, value: string): Promise<Suggestions> =>
    sim<Suggestions>("suggest", { channel, ts, view_id, user: seen.me.id, action_id: element.action_id, block_id: block.block_id, value })
      .catch((e: Error) => ({ visible_error: e.message })), [seen.me.id, channel, ts, view_id]);
}
