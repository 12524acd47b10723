// Interactive elements.
import { Fragment, useEffect, useId, useRef, useState, type ReactNode } from "react";
import { Confirm } from "./dialogs";
import { Icon } from "./icons";
import { ImageBox } from "./media";
import { Menu } from "./menu";
import type { Channel, ClickOutcome, Json } from "./sim";
import { held, useSurface, type Entered } from "./surface";
import { Link, TextObject } from "./text";
import { able, nameOf, useWorkspace } from "./workspace";

export interface ElementProps { block: Json; element: Json; id?: string; describedBy?: string; invalid?: boolean; labeled?: boolean }

/** useAct uses an element: a confirm dialog first, then what came of it. */
function useAct(block: Json, element: Json) {
  const surface = useSurface();
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState<{ value?: Entered } | null>(null);
  const [outcome, setOutcome] = useState<ClickOutcome>({});
  const [at, setAt] = useState(0);
  const alive = useRef(true);
  useEffect(() => { alive.current = true; return () => { alive.current = false; }; }, []);

  async function go(value?: Entered) {
    setBusy(true);
    const out = await surface.act(block, element, value);
    if (!alive.current) return;
    setBusy(false);
    setOutcome(out);
    setAt((n) => n + 1);
  }
  const act = (value?: Entered) => { if (!busy) { if (element.confirm) setAsking({ value }); else void go(value); } };
  const after: ReactNode = (
    <>
      {outcome.visible_error && <span key={at} className="warning" role="alert"><Icon name="warning" />{outcome.visible_error}</span>}
      {outcome.url && <span className="leads" role="status">This button leads to <Link url={outcome.url} label={outcome.url} /></span>}
      {asking && <Confirm of={element.confirm} onAnswer={(yes) => { setAsking(null); if (yes) void go(asking.value); }} />}
    </>
  );
  return { act, busy, after };
}

function Button({ block, element, className = "", children }: ElementProps & { className?: string; children?: ReactNode }) {
  const { act, busy, after } = useAct(block, element);
  return (
    <>
      <button type="button" className={`act ${element.style ?? ""} ${className}`} aria-label={element.accessibility_label} aria-busy={busy}
        title={element.url} data-action={element.action_id} onClick={() => act()}>
        {children ?? <TextObject of={element.text} />}
        {element.url && <span className="out" aria-hidden="true">↗</span>}
      </button>
      {after}
    </>
  );
}

function Feedback({ block, element }: ElementProps) {
  const { act, busy, after } = useAct(block, element);
  return (
    <>
      {[element.positive_button, element.negative_button].map((b: Json, i) => (
        <button key={i} type="button" className="act" aria-busy={busy} aria-label={b.accessibility_label} onClick={() => act(b.value)}><TextObject of={b.text} /></button>
      ))}
      {after}
    </>
  );
}

function Overflow({ block, element }: ElementProps) {
  const { act, busy, after } = useAct(block, element);
  const entries = element.options.map((o: Json) => ({ value: o.value, label: <TextObject of={o.text} />, description: o.description && <TextObject of={o.description} /> }));
  return <Menu label="More actions" entries={entries} busy={busy} onPick={act}>{after}</Menu>;
}

/** useField is an element that holds a value. */
function useField({ block, element }: ElementProps) {
  const surface = useSurface();
  const { act, busy, after } = useAct(block, element);
  const [local, setLocal] = useState<Entered>();
  const kept = held(element, surface.values?.[block.block_id]?.[element.action_id]);
  const input = block.type === "input" && surface.enter;
  const value = (input ? surface.entered?.(block, element) : local) ?? kept;
  const set = (v: Entered) => (input ? surface.enter!(block, element, v) : setLocal(v));
  /** commit is set for something that is complete: an option, a date. What is entered into a modal goes with its submission. */
  const commit = (v: Entered) => {
    set(v);
    if (!input || block.dispatch_action) act(v);
  };
  const sent = useRef<Promise<unknown>>(Promise.resolve());
  /** type is for text that is not complete. In a message it is in the state of the next click, so the simulator gets it. */
  const type = (v: Entered) => {
    set(v);
    if (block.type === "input" && !input && !block.dispatch_action && element.type.endsWith("_input")) sent.current = sent.current.then(() => surface.act(block, element, v));
  };
  return { value, type, commit, busy, after };
}

interface Choice { value: string; label: string; description?: Json; group?: string }

function useChoices(element: Json): Choice[] {
  const { seen } = useWorkspace();
  if (element.type.endsWith("users_select")) return able(seen.state).map((p) => ({ value: p.id, label: nameOf(p, p.id) }));
  if (/(conversations|channels)_select$/.test(element.type)) {
    const { include, exclude_bot_users } = element.type.endsWith("channels_select") ? { include: ["public"] } : element.filter ?? {};
    const kind = (c: Channel) => (c.is_im ? "im" : c.is_mpim ? "mpim" : c.is_private ? "private" : "public");
    return seen.channels.filter((c) => (include?.includes(kind(c)) ?? true) && !(c.is_im && exclude_bot_users))
      .map((c) => ({ value: c.id, label: c.is_im ? seen.state.bot.real_name : "#" + c.name }));
  }
  const one = (group?: string) => (o: Json): Choice => ({ value: o.value, label: o.text.text, description: o.description, group });
  return [...(element.options ?? []).map(one()), ...(element.option_groups ?? []).flatMap((g: Json) => g.options.map(one(g.label.text)))];
}

function Select(props: ElementProps) {
  const { element, id, describedBy, invalid } = props;
  const { value, commit, busy, after } = useField(props);
  const choices = useChoices(element);
  const groups = [...new Set(choices.map((c) => c.group))];
  return (
    <>
      <select id={id} className="field" value={String(value)} aria-label={props.labeled ? undefined : element.placeholder?.text ?? "Choose"} aria-describedby={describedBy} aria-invalid={invalid} aria-busy={busy}
        onChange={(e) => commit(e.target.value)}>
        <option value="">{element.placeholder?.text ?? "Choose an option"}</option>
        {groups.map((g) => {
          const options = choices.filter((c) => c.group === g).map((c) => <option key={c.value} value={c.value}>{c.label}</option>);
          return g === undefined ? options : <optgroup key={g} label={g}>{options}</optgroup>;
        })}
      </select>
      {after}
    </>
  );
}

/** Picks is a group of radio buttons or checkboxes; lists to choose several from are drawn so too. */
function Picks(props: ElementProps & { several: boolean }) {
  const { element, id, describedBy, invalid, several } = props;
  const { value, commit, after } = useField(props);
  const name = useId();
  const choices = useChoices(element);
  const chosen = [value].flat();
  const pick = (v: string, on: boolean) => commit(several ? choices.map((c) => c.value).filter((c) => (c === v ? on : chosen.includes(c))) : v);
  const texts = new Map<string, Json>((element.options ?? []).map((o: Json) => [o.value, o.text]));
  return (
    <div className={element.type.startsWith("multi_") ? "picks boxed" : "picks"} role={several ? "group" : "radiogroup"} aria-labelledby={id && id + "-label"} aria-label={id ? undefined : "Choose"} aria-describedby={describedBy} aria-invalid={several ? undefined : invalid}>
      {choices.map((c, i) => (
        <Fragment key={c.value}>
          {c.group !== choices[i - 1]?.group && <strong>{c.group}</strong>}
          <label>
            <input id={i === 0 ? id : undefined} type={several ? "checkbox" : "radio"} name={name} checked={chosen.includes(c.value)} onChange={(e) => pick(c.value, e.target.checked)} />
            <span>{texts.has(c.value) ? <TextObject of={texts.get(c.value)} /> : c.label}{c.description && <small><TextObject of={c.description} /></small>}</span>
          </label>
        </Fragment>
      ))}
      {after}
    </div>
  );
}

/** External is a menu whose options the app loads while a person types. */
function External(props: ElementProps) {
  const { block, element, id, describedBy, invalid } = props;
  const surface = useSurface();
  const { value, commit, busy, after } = useField(props);
  const [typed, setTyped] = useState<string | null>(null); // null while the list is shut
  const [found, setFound] = useState<Json[]>([]);
  const [note, setNote] = useState("");
  const texts = useRef(new Map<string, Json>());
  const state = surface.values?.[block.block_id]?.[element.action_id];
  for (const o of [element.initial_option, element.initial_options, state?.selected_option, state?.selected_options].flat()) if (o) texts.current.set(o.value, o.text);
  const several = element.type.startsWith("multi_");
  const chosen = [value].flat().filter((v) => v !== "");
  const least = element.min_query_length ?? 3;

  useEffect(() => {
    setFound([]);
    if (typed === null) return setNote("");
    if ([...typed].length < least) return setNote(`Type ${least === 1 ? "a character" : `${least} characters`} to see what there is.`);
    setNote("Loading…");
    let stale = false;
    const timer = setTimeout(async () => {
      const out = await surface.suggest(block, element, typed);
      if (stale) return;
      const options = [...(out.options ?? []), ...(out.option_groups ?? []).flatMap((g) => g.options)];
      setFound(options);
      setNote(out.visible_error ?? (options.length ? "" : "Nothing was found."));
    }, 250);
    return () => { stale = true; clearTimeout(timer); };
  }, [typed, least]);

  function pick(o: Json) {
    texts.current.set(o.value, o.text);
    commit(several ? [...chosen.filter((v) => v !== o.value), o.value] : o.value);
    setTyped(null);
  }
  return (
    <div className="picks">
      {chosen.map((v) => (
        <span key={v}>
          {texts.current.has(v) ? <TextObject of={texts.current.get(v)} /> : v}
          {(several || block.type === "input") && <button type="button" className="icon" aria-label="Remove" onClick={() => commit(several ? chosen.filter((c) => c !== v) : "")}><Icon name="close" /></button>}
        </span>
      ))}
      <input id={id} className="field" value={typed ?? ""} placeholder={element.placeholder?.text ?? "Choose an option"} autoComplete="off" aria-describedby={describedBy} aria-invalid={invalid} aria-busy={busy}
        aria-label={props.labeled ? undefined : element.placeholder?.text ?? "Choose"} onFocus={() => setTyped((t) => t ?? "")} onChange={(e) => setTyped(e.target.value)}
        onKeyDown={(e) => { if (e.key === "Enter") { e.preventDefault(); if (found[0]) pick(found[0]); } }} />
      {found.length > 0 && <span className="picks boxed" role="listbox">{found.map((o) => <button key={o.value} type="button" role="option" aria-selected={chosen.includes(o.value)} onClick={() => pick(o)}><TextObject of={o.text} /></button>)}</span>}
      {note && <small role="status">{note}</small>}
      {after}
    </div>
  );
}

const types: Record<string, string> = { email_text_input: "email", url_text_input: "url", datepicker: "date", timepicker: "time", datetimepicker: "datetime-local" };

const pad = (n: number) => String(n).padStart(2, "0");
const localTime = (seconds: string) => {
  if (!seconds) return "";
  const at = new Date(Number(seconds) * 1000);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}`;
};

function Field(props: ElementProps) {
  const { block, element, id, describedBy, invalid } = props;
  const { value, type: typed, commit, after } = useField(props);
  const type = types[element.type] ?? "text";
  const long = element.multiline || element.type === "rich_text_input";
  const picked = ["date", "time", "datetime-local"].includes(type);
  const text = type === "datetime-local" ? localTime(String(value)) : String(value);
  const left = element.max_length === undefined ? Infinity : element.max_length - [...text].length;
  const common = {
    id, className: "field", placeholder: element.placeholder?.text, "aria-describedby": describedBy, "aria-invalid": invalid,
    "aria-label": props.labeled ? undefined : element.placeholder?.text ?? "Text", "data-focus": element.focus_on_load ? "" : undefined,
  };
  const change = (v: string) => {
    const out = type === "datetime-local" && v ? String(Math.floor(new Date(v).getTime() / 1000)) : v;
    if (picked) commit(out);
    else typed(out);
  };
  return (
    <>
      {long
        ? <textarea {...common} rows={4} value={text} onChange={(e) => change(e.target.value)} />
        : <input {...common} type={type} inputMode={element.type === "number_input" ? "decimal" : undefined} value={text} onChange={(e) => change(e.target.value)}
            onKeyDown={(e) => { if (e.key === "Enter" && !picked && (block.dispatch_action || block.type !== "input")) { e.preventDefault(); commit(text); } }} />}
      {left < 40 && <span className={left < 0 ? "left over" : "left"}>{left < 0 ? `${-left} too many` : `${left} left`}</span>}
      {after}
    </>
  );
}

/** Element draws one element of a block. */
export function Element(props: ElementProps) {
  const { element } = props;
  switch (element.type) {
    case "button": case "workflow_button": return <Button {...props} />;
    case "icon_button": return <Button {...props} className="quiet" />;
    case "feedback_buttons": return <Feedback {...props} />;
    case "overflow": return <Overflow {...props} />;
    case "image": return <ImageBox alt={element.alt_text} url={element.image_url} small />;
    case "radio_buttons": return <Picks {...props} several={false} />;
    case "checkboxes": return <Picks {...props} several />;
    case "external_select": case "multi_external_select": return <External {...props} />;
    case "file_input": return <input id={props.id} className="field" disabled placeholder="Files cannot be uploaded here" aria-describedby={props.describedBy} />;
  }
  if (element.type.startsWith("multi_")) return <Picks {...props} several />;
  if (element.type.endsWith("_select")) return <Select {...props} />;
  return <Field {...props} />;
}
