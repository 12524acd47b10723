// Block Kit.
import { useId, type ReactNode } from "react";
import { Element } from "./elements";
import { Fold } from "./fold";
import { Markdown } from "./markdowntext";
import { ImageBox } from "./media";
import { RichText } from "./richtext";
import type { Json } from "./sim";
import { useSurface } from "./surface";
import { Link, TextObject } from "./text";

/** Blocks draws a list of blocks. */
export const Blocks = ({ of }: { of: Json[] }) => of.map((b, i) => <Block key={b.block_id ?? i} block={b} />);

export function Block({ block }: { block: Json }) {
  return kinds[block.type]?.(block) ?? <p className="hint">This page cannot show a block of type {String(block.type)}.</p>;
}

function Input({ block }: { block: Json }) {
  const surface = useSurface();
  const id = useId();
  const error = surface.errors?.[block.block_id];
  const group = /^(radio_buttons|checkboxes|multi_)/.test(block.element.type);
  const Label = group ? "span" : "label";
  const notes = [block.hint && id + "-hint", error && id + "-error"].filter(Boolean).join(" ") || undefined;
  return (
    <div className={error ? "input wrong" : "input"} data-block={block.block_id}>
      <Label className="label" id={id + "-label"} {...(group ? {} : { htmlFor: id })}><TextObject of={block.label} />{block.optional && <small> (optional)</small>}</Label>
      <Element block={block} element={block.element} id={id} describedBy={notes} invalid={error ? true : undefined} labeled />
      {error && <p className="error" id={id + "-error"} role="alert">{error}</p>}
      {block.hint && <p className="hint" id={id + "-hint"}><TextObject of={block.hint} /></p>}
    </div>
  );
}

function cell(block: Json, c: Json): ReactNode {
  switch (c.type) {
    case "rich_text":
      return <RichText of={c} />;
    case "action_cell":
      return <Element block={block} element={c.element} />;
  }
  return String(c.text ?? c.value ?? "");
}

function Table({ block }: { block: Json }) {
  const [head, ...rows] = block.rows as Json[][];
  const align = (i: number) => ({ textAlign: block.column_settings?.[i]?.align });
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={block.caption ?? "Table"}>
      <table>
        {block.caption && <caption>{block.caption}</caption>}
        <thead><tr>{head?.map((c, i) => <th key={i} scope="col" style={align(i)}>{cell(block, c)}</th>)}</tr></thead>
        <tbody>{rows.map((row, n) => <tr key={n}>{row.map((c, i) => (i === block.row_header_column_index ? <th key={i} scope="row">{cell(block, c)}</th> : <td key={i} style={align(i)}>{cell(block, c)}</td>))}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** chart draws a chart as the table of its values. */
function chart({ title, chart }: Json): ReactNode {
  const columns: Json[] = chart.series ?? [{ name: "Value", data: chart.segments }];
  const labels: string[] = chart.axis_config?.categories ?? chart.segments.map((s: Json) => s.label);
  const head = [{ text: chart.axis_config?.x_label ?? "" }, ...columns.map((c) => ({ text: c.name }))];
  const rows = labels.map((text) => [{ text }, ...columns.map((c) => c.data.find((point: Json) => point.label === text))]);
  return <Table block={{ caption: title, rows: [head, ...rows], row_header_column_index: 0 }} />;
}

const actions = (block: Json, list: Json[] | undefined) =>
  list && <div className="actions">{list.map((e, i) => <Element key={e.action_id ?? i} block={block} element={e} />)}</div>;

function card(b: Json): ReactNode {
  return (
    <div className="tile">
      {b.hero_image && <ImageBox alt={b.hero_image.alt_text} url={b.hero_image.image_url} />}
      {b.title && <strong><TextObject of={b.title} /></strong>}
      {b.subtitle && <small><TextObject of={b.subtitle} /></small>}
      {b.body && <div><TextObject of={b.body} /></div>}
      {b.subtext && <small><TextObject of={b.subtext} /></small>}
      {actions(b, b.actions)}
    </div>
  );
}

const states: Record<string, string> = { pending: "To do", in_progress: "In progress", complete: "Done", error: "Failed" };

const task = (b: Json): ReactNode => (
  <div className={"task " + (b.status ?? "")}>
    {!b.hide_title && <strong>{b.title}</strong>}{b.status && <small> {states[b.status]}</small>}
    {b.details && <RichText of={b.details} />}{b.output && <RichText of={b.output} />}
    {b.sources?.map((s: Json, i: number) => <div key={i}><Link url={s.url} label={s.text} /></div>)}
  </div>
);

const kinds: Record<string, (block: Json) => ReactNode> = {
  header: (b) => <h3><TextObject of={b.text} /></h3>,
  divider: () => <hr />,
  section: (b) => (
    <div className="section">
      <div>
        {b.text && <Fold open={b.expand}><div className="text"><TextObject of={b.text} /></div></Fold>}
        {b.fields && <div className="fields">{b.fields.map((f: Json, i: number) => <div key={i}><TextObject of={f} /></div>)}</div>}
      </div>
      {b.accessory && <div className="accessory"><Element block={b} element={b.accessory} /></div>}
    </div>
  ),
  context: (b) => <div className="context">{b.elements.map((e: Json, i: number) => (e.type === "image" ? <ImageBox key={i} alt={e.alt_text} url={e.image_url} small /> : <span key={i}><TextObject of={e} /></span>))}</div>,
  actions: (b) => actions(b, b.elements),
  context_actions: (b) => actions(b, b.elements),
  rich_text: (b) => <Fold><RichText of={b} /></Fold>,
  input: (b) => <Input block={b} />,
  image: (b) => <figure>{b.title && <figcaption><TextObject of={b.title} /></figcaption>}<ImageBox alt={b.alt_text} url={b.image_url} /></figure>,
  alert: (b) => <div className={"alert " + (b.level ?? "default")} role="note"><TextObject of={b.text} /></div>,
  markdown: (b) => <Fold><Markdown text={b.text} /></Fold>,
  table: (b) => <Table block={b} />,
  data_table: (b) => <Table block={b} />,
  data_visualization: chart,
  card,
  carousel: (b) => <div className="carousel" tabIndex={0} role="region" aria-label="Cards">{b.elements.map((c: Json, i: number) => <div key={i}>{card(c)}</div>)}</div>,
  container: (b) => (
    <div className="tile">
      {b.title && <strong><TextObject of={b.title} /></strong>}
      {b.rich_text_title && <RichText of={b.rich_text_title} />}
      {b.subtitle && <small><TextObject of={b.subtitle} /></small>}
      <Blocks of={b.child_blocks} />
    </div>
  ),
  layout: (b) => (
    <div role="group" aria-label={b.label}>
      {b.is_label_visible && <small>{b.label}</small>}
      {b.rows.map((row: Json, n: number) => <div className="layout" key={n}>{row.items.map((item: Json, i: number) => <div key={i}><Block block={item.block} /></div>)}</div>)}
    </div>
  ),
  task_card: task,
  plan: (b) => <div className="tile"><strong>{b.title}</strong>{b.tasks?.map((t: Json, i: number) => <div key={i}>{task(t)}</div>)}</div>,
  video: (b) => (
    <figure>
      <figcaption><Link url={b.title_url ?? b.video_url} label={b.title.text} />{b.author_name && <small> {b.author_name}</small>}</figcaption>
      <ImageBox alt={b.alt_text} url={b.thumbnail_url} />
      {b.description && <p><TextObject of={b.description} /></p>}
    </figure>
  ),
};
