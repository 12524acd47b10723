// The composer sends messages and slash commands, and completes what is
// typed after @, # and /.
import { useId, useLayoutEffect, useRef, useState } from "react";
import { Icon } from "./icons";
import { Avatar } from "./message";
import { sim, type CommandOutcome, type Person } from "./sim";
import { nameOf, useWorkspace } from "./workspace";

interface Offer { insert: string; title: string; note: string; person?: Person }

export function Composer({ channel, thread, placeholder, focus }: { channel: string; thread?: string; placeholder: string; focus?: boolean }) {
  const { seen, stopped, say, look } = useWorkspace();
  const [text, setText] = useState("");
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [shut, setShut] = useState(false);
  const [sending, setSending] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const caretTo = useRef<number | null>(null);
  const id = useId();
  const typed = /(?:^|\s)([@#][\w.-]*)$/.exec(text.slice(0, caret))?.[1] ?? /^\/[\w-]*$/.exec(text.slice(0, caret))?.[0];
  const offers = shut || typed === undefined ? [] : offersFor(typed, seen);
  const at = Math.min(chosen, offers.length - 1);

  useLayoutEffect(() => {
    const node = area.current!;
    node.style.height = "auto";
    node.style.height = Math.min(node.scrollHeight, 200) + "px";
    if (caretTo.current !== null) { // before the next key arrives
      node.focus();
      node.setSelectionRange(caretTo.current, caretTo.current);
      caretTo.current = null;
    }
  }, [text]);
  useLayoutEffect(() => { if (focus) area.current?.focus(); }, [focus, thread]);

  function put(next: string, to: number) {
    setText(next);
    setCaret(to);
    setChosen(0);
    setShut(false);
    caretTo.current = to;
  }
  function take(offer: Offer) {
    const start = caret - typed!.length;
    put(text.slice(0, start) + offer.insert + " " + text.slice(caret), start + offer.insert.length + 1);
  }
  function insert(what: string) {
    const gap = caret > 0 && !/\s/.test(text[caret - 1]!) && what !== "/" ? " " : "";
    put(text.slice(0, caret) + gap + what + text.slice(caret), caret + gap.length + what.length);
  }

  async function send() {
    const said = text.trim();
    if (!said || sending || stopped) return;
    const target = { user: seen.me.id, channel, thread_ts: thread };
    const command = /^(\/[\w-]+)\s*([\s\S]*)$/.exec(said);
    setSending(true);
    setText("");
    setCaret(0);
    try {
      if (command) {
        const out = await sim<CommandOutcome>("command", { ...target, command: command[1], text: command[2] });
        if (out.visible_error) say("Slackbot, only to you: " + out.visible_error);
      } else {
        await sim("post", { ...target, text: said });
      }
    } catch (e) {
      setText(said);
      say((e as Error).message);
    }
    setSending(false);
    look();
  }

  function onKeyDown(e: React.KeyboardEvent) {
    if (e.nativeEvent.isComposing) return;
    if (offers.length) {
      const move = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (move) { e.preventDefault(); setChosen((at + move + offers.length) % offers.length); return; }
      if (e.key === "Tab" || (e.key === "Enter" && offers[at]!.insert !== typed)) { e.preventDefault(); take(offers[at]!); return; }
      if (e.key === "Escape") { e.stopPropagation(); setShut(true); return; }
    }
    if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); void send(); }
  }

  return (
    <form className="composer" onSubmit={(e) => { e.preventDefault(); void send(); }}>
      {offers.length > 0 && (
        <ul className="offers" role="listbox" id={id} aria-label="Suggestions">
          {offers.map((o, i) => (
            <li key={o.insert} id={id + i} role="option" aria-selected={i === at} onPointerDown={(e) => { e.preventDefault(); take(o); }} onPointerMove={() => setChosen(i)}>
              {o.person ? <Avatar person={o.person} id={o.person.id} size="tiny" /> : <span className="sign" aria-hidden="true">{o.insert[0]}</span>}
              <strong>{o.title}</strong><small>{o.note}</small>
            </li>
          ))}
        </ul>
      )}
      <textarea ref={area} rows={1} value={text} disabled={stopped} placeholder={placeholder} aria-label={placeholder} aria-autocomplete="list" aria-haspopup="listbox"
        aria-controls={offers.length ? id : undefined} aria-activedescendant={offers.length ? id + at : undefined} aria-describedby={id + "-keys"}
        onChange={(e) => { setText(e.target.value); setCaret(e.target.selectionStart); setChosen(0); setShut(false); }}
        onSelect={(e) => setCaret(e.currentTarget.selectionStart)} onBlur={() => setShut(true)} onKeyDown={onKeyDown} />
      <div className="tools">
        <button type="button" className="icon" disabled={stopped} aria-label="Mention someone" title="Mention someone" onClick={() => insert("@")}><Icon name="at" /></button>
        {!thread && <button type="button" className="icon" disabled={stopped} aria-label="Use a command" title="Use a command" onClick={() => { if (!text) insert("/"); else area.current?.focus(); }}><Icon name="slash" /></button>}
        <span className="hint keys" id={id + "-keys"}><kbd>Enter</kbd> sends · <kbd>Shift Enter</kbd> new line</span>
        <button type="submit" className="send" aria-label="Send" disabled={stopped || !text.trim()}><Icon name="send" /></button>
      </div>
    </form>
  );
}

/** offersFor lists what a word that is being typed may become. */
function offersFor(typed: string, seen: ReturnType<typeof useWorkspace>["seen"]): Offer[] {
  const word = typed.slice(1).toLowerCase();
  const { state, channels } = seen;
  let all: Offer[];
  if (typed[0] === "/") {
    all = (state.commands ?? ["/" + state.bot.name]).map((c) => ({ insert: c, title: c, note: nameOf(state.bot, "") }));
  } else if (typed[0] === "#") {
    all = channels.filter((c) => !c.is_im).map((c) => ({ insert: "#" + c.name, title: "#" + c.name, note: `${c.members.length} members` }));
  } else {
    const people = state.people.filter((p) => !p.deleted).sort((a, b) => Number(b.is_bot ?? false) - Number(a.is_bot ?? false));
    all = [
      ...people.map((p) => ({ insert: "@" + p.name, title: nameOf(p, p.id), note: "@" + p.name + (p.is_bot ? " · app" : ""), person: p })),
      ...state.groups.filter((g) => !g.disabled).map((g) => ({ insert: "@" + g.handle, title: "@" + g.handle, note: `${g.name}, ${g.users.length} ${g.users.length === 1 ? "member" : "members"}` })),
    ];
  }
  return all.filter((o) => o.insert.slice(1).toLowerCase().startsWith(word) || (word && o.title.toLowerCase().startsWith(word))).slice(0, 8);
}
