// The bar at the top: who one acts as, and how the page looks.
import { useRef } from "react";
import { Icon, Seal } from "./icons";
import { Avatar } from "./message";
import { useTheme } from "./theme";
import { able, nameOf, useWorkspace } from "./workspace";

interface Props { seat: boolean; inspector: boolean; onAct(user: string): void; onInspector(): void; onDuo(): void; onMenu(): void }

export function Top({ seat, inspector, onAct, onInspector, onDuo, onMenu }: Props) {
  const { seen } = useWorkspace();
  const [theme, turn] = useTheme();
  const words = { auto: "Light or dark as the system", light: "Light", dark: "Dark" }[theme];
  return (
    <header className="top">
      <button type="button" className="icon only-narrow" aria-label="Channels" onClick={onMenu}><Icon name="menu" /></button>
      {!seat && <div className="team"><Seal /><strong>{seen.state.team}</strong><span className="badge" title="Nothing here reaches the real Slack">simulated</span></div>}
      <People onAct={onAct} />
      {!seat && (
        <div className="switches">
          <button type="button" className="icon wide-only" aria-label="Two people side by side" title="Two people side by side" onClick={onDuo}><Icon name="columns" /></button>
          <button type="button" className="icon" aria-label={"Colors: " + words} title={"Colors: " + words} onClick={turn}><Icon name={{ auto: "auto", light: "sun", dark: "moon" }[theme]} /></button>
          <button type="button" className="icon" aria-pressed={inspector} aria-label="Inspector" title="Inspector: what happens behind the messages" onClick={onInspector}><Icon name="pulse" /></button>
        </div>
      )}
    </header>
  );
}

/** People is a group of radio buttons: arrows move, and moving acts. */
function People({ onAct }: { onAct(user: string): void }) {
  const { seen } = useWorkspace();
  const box = useRef<HTMLDivElement>(null);
  const people = able(seen.state);
  function onKeyDown(e: React.KeyboardEvent) {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (!move) return;
    e.preventDefault();
    const next = people.at((people.findIndex((p) => p.id === seen.me.id) + move) % people.length)!;
    onAct(next.id);
    box.current?.querySelector<HTMLElement>(`[data-person="${next.id}"]`)?.focus();
  }
  return (
    <div className="people" role="radiogroup" aria-label="Act as" ref={box} onKeyDown={onKeyDown}>
      <span className="hint" aria-hidden="true">Act as</span>
      {people.map((p) => {
        const on = p.id === seen.me.id;
        return (
          <button key={p.id} type="button" role="radio" aria-checked={on} tabIndex={on ? 0 : -1} data-person={p.id} title={`${nameOf(p, p.id)} (@${p.name})`} aria-label={nameOf(p, p.id)} onClick={() => onAct(p.id)}>
            <Avatar person={p} id={p.id} size="small" /><span className="name">{nameOf(p, p.id).split(" ")[0]}</span>
          </button>
        );
      })}
    </div>
  );
}
