// The page of one person.
import { useCallback, useEffect, useMemo, useState } from "react";
import { Blocks } from "./blocks";
import { useClick, useSuggest } from "./click";
import { Composer } from "./composer";
import { Guide, Welcome } from "./guide";
import { Inspector } from "./inspector";
import { Icon } from "./icons";
import { Avatar, MessageList } from "./message";
import { Modals } from "./modal";
import { Arrivals, Notices, useNotices } from "./notices";
import { splitThreads, useReading } from "./reading";
import { Sidebar, type Place } from "./sidebar";
import { sim, type View } from "./sim";
import { SurfaceProvider } from "./surface";
import { Top } from "./top";
import { nameOf, useLookups, useNow, useSeen, useWorkspace, WorkspaceProvider } from "./workspace";

/** where reads the address: #person/channel/thread, or #person/home. */
function where(): { user: string; place: Place } {
  const [user = "", channel = "", thread] = decodeURIComponent(location.hash.slice(1)).split("/");
  return { user, place: channel === "home" ? { channel: "", home: true } : { channel, thread } };
}

export function App({ seat, fresh }: { seat: boolean; fresh: boolean }) {
  const [user, setUser] = useState(() => where().user);
  const [places, setPlaces] = useState<Record<string, Place>>(() => ({ [where().user]: where().place }));
  const [notices, say, drop] = useNotices();
  const [seen, look, stopped] = useSeen(user, fresh, say);
  const now = useNow();
  const lookups = useLookups(seen);
  const [inspector, setInspector] = useState(false);
  const [menu, setMenu] = useState(false);

  const me = seen?.me.id ?? user;
  const wanted = places[me] ?? places[user] ?? { channel: "" };
  const first = seen?.channels.find((c) => !c.is_im)?.id ?? seen?.channels[0]?.id ?? "";
  const known = seen?.channels.find((c) => c.id === wanted.channel || c.name === wanted.channel);
  const bot = seen?.state.bot.id;
  const tabbed = seen?.state.home !== false;
  const direct = seen?.channels.find((c) => c.is_im)?.id;
  const place: Place = known ? { ...wanted, home: wanted.home && tabbed, channel: known.id } : (wanted.home && tabbed) || (wanted.channel && wanted.channel === bot) ? { ...wanted, home: wanted.home && tabbed, channel: direct ?? bot ?? "" } : { channel: first };

  const go = useCallback((next: Place) => {
    setMenu(false);
    setPlaces((all) => ({ ...all, [me]: next, [user || me]: next })); // user: whom the page is turning to
    if (next.home) sim("home", { user: me }).catch((e: Error) => say(e.message));
  }, [me, user]);
  // Whoever one acts as next is shown the same place.
  const act = useCallback((next: string) => {
    setMenu(false);
    setPlaces((all) => ({ ...all, [next]: place.home || place.channel.startsWith("D") ? all[next] ?? { channel: "" } : place }));
    setUser(next);
  }, [JSON.stringify(place)]);

  useEffect(() => {
    if (!seen || seen.me.id !== me) return;
    history.replaceState(null, "", "#" + [me, place.home ? "home" : place.channel, ...(place.thread ? [place.thread] : [])].join("/"));
  }, [me, place.channel, place.thread, place.home]);
  useEffect(() => {
    const moved = () => {
      const w = where();
      setUser(w.user);
      setPlaces((all) => ({ ...all, [w.user]: w.place }));
    };
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if (!e.altKey || e.ctrlKey || e.metaKey || !seen) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (!step) return;
      e.preventDefault();
      const at = seen.channels.findIndex((c) => c.id === place.channel);
      go({ channel: seen.channels.at((at + step) % seen.channels.length)!.id });
    };
    window.addEventListener("keydown", keys);
    return () => window.removeEventListener("keydown", keys);
  }, [seen, place.channel, go]);

  const workspace = useMemo(() => seen && { seen, now, stopped, ...lookups, say, look, open: (channel: string) => go({ channel }) }, [seen, now, stopped, lookups, go]);
  if (!workspace || !seen) return <main className="loading"><p>{stopped ? halted : "Opening the workspace…"}</p><Notices list={notices} onDrop={drop} /></main>;
  return (
    <WorkspaceProvider value={workspace}>
      <div className={["app", inspector && "with-inspector", place.thread && "with-thread", menu && "with-menu", seat && "seat"].filter(Boolean).join(" ")}>
        <Top seat={seat} inspector={inspector} onAct={act} onInspector={() => setInspector(!inspector)} onMenu={() => setMenu(!menu)}
          onDuo={() => { location.hash = `#duo/${me}/${seen.state.groups[0]?.users.find((u) => u !== me) ?? seen.state.people.find((p) => p.id !== me)!.id}/${place.home ? "" : place.channel}`; location.reload(); }} />
        <Desk key={seen.me.id} place={place} onGo={go} onAct={act} onMenu={() => setMenu(false)} menu={menu} />
        {inspector && <Inspector onClose={() => setInspector(false)} />}
      </div>
      <Modals stack={seen.views} />
      <Notices list={notices} onDrop={drop} />
      <Arrivals />
    </WorkspaceProvider>
  );
}

const halted = "The workspace stopped. Start it again; this page reconnects.";

interface DeskProps { place: Place; menu: boolean; onGo(place: Place): void; onAct(user: string): void; onMenu(): void }

function Desk({ place, menu, onGo, onAct, onMenu }: DeskProps) {
  const { seen, stopped, say, look } = useWorkspace();
  const { state, me } = seen;
  const channel = seen.channels.find((c) => c.id === place.channel);
  const list = seen.messages[place.channel] ?? [];
  const { top, replies } = useMemo(() => splitThreads(list), [list]);
  const { unread, unreadAfter, freshThread } = useReading(seen, place.channel, place.thread, !!place.home);
  const direct = !channel || channel.is_im;
  const title = direct ? nameOf(state.bot, state.bot.id) : channel.name;
  const write = (text: string) => { sim("post", { user: me.id, channel: place.channel, text }).then(look, (e: Error) => say(e.message)); };
  const openThread = (ts: string) => onGo({ ...place, thread: ts });
  const root = place.thread ? list.find((m) => m.ts === place.thread) : undefined;
  const story = list.some((m) => !m.is_ephemeral);

  return (
    <div className="desk">
      {menu && <button type="button" className="shade" aria-label="Close the channels" onClick={onMenu} />}
      <Sidebar place={place} unread={unread} onGo={onGo} />
      {stopped && <p className="halted" role="alert">{halted}</p>}
      {story && !place.home && !stopped && <Guide messages={list} thread={place.thread} onThread={openThread} onAct={onAct} onTry={write} />}
      <main aria-label={direct ? title : "#" + title}>
        <header className="bar">
          <h1>{direct ? <Avatar person={state.bot} id={state.bot.id} size="small" /> : <Icon name={channel.is_private ? "lock" : "hash"} />}{title}</h1>
          {direct
            ? state.home !== false && <div className="tabs" role="tablist" aria-label={title}>
                {(["home", "messages"] as const).map((t) => <button key={t} type="button" role="tab" id={"tab-" + t} aria-selected={(t === "home") === !!place.home} tabIndex={(t === "home") === !!place.home ? 0 : -1}
                  onKeyDown={(e) => { if (/^Arrow(Left|Right)$/.test(e.key)) { onGo({ channel: place.channel, home: t !== "home" }); document.getElementById(t === "home" ? "tab-messages" : "tab-home")?.focus(); } }}
                  onClick={() => onGo({ channel: place.channel, home: t === "home" })}>{t === "home" ? "Home" : "Messages"}</button>)}
              </div>
            : <Members ids={channel.members} />}
        </header>
        {place.home ? <Home view={seen.home} /> : (
          <>
            <MessageList key={place.channel} label={direct ? "Messages with " + title : "Messages in #" + title} messages={top} replies={replies} onThread={openThread} unreadAfter={unreadAfter} freshThread={freshThread}
              head={!story && !direct ? <Welcome onTry={write} onAct={onAct} /> : direct && !list.length && state.messages !== false ? <p className="empty">This is the beginning of your conversation with {title}. Write below what you need.</p> : null} />
            {direct && state.messages === false ? <p className="off">Sending messages to this app has been turned off.</p>
              : <Composer key={"c" + place.channel} channel={place.channel} placeholder={direct ? "Message " + title : "Message #" + title} />}
          </>
        )}
      </main>
      {place.thread && (
        <aside className="thread pane" aria-label="Thread" onKeyDown={(e) => { if (e.key === "Escape") onGo({ ...place, thread: undefined }); }}>
          <header><h2>Thread <small>{direct ? title : "#" + title}</small></h2><button type="button" className="icon" aria-label="Close thread" onClick={() => onGo({ ...place, thread: undefined })}><Icon name="close" /></button></header>
          <MessageList key={place.thread} label="Thread" messages={[...(root ? [root] : []), ...(replies.get(place.thread) ?? [])]} />
          {direct && state.messages === false ? <p className="off">Sending messages to this app has been turned off.</p>
            : <Composer key={"t" + place.thread} channel={place.channel} thread={place.thread} placeholder="Reply in thread" />}
        </aside>
      )}
    </div>
  );
}

function Members({ ids }: { ids: string[] }) {
  const { person } = useWorkspace();
  const names = ids.map((id) => nameOf(person(id), id));
  return <div className="members" role="img" aria-label={`${ids.length} members: ${names.join(", ")}`} title={names.join(", ")}>{ids.slice(0, 4).map((id) => <Avatar key={id} person={person(id)} id={id} size="tiny" />)}<small>{ids.length}</small></div>;
}

function Home({ view }: { view?: View }) {
  const { seen } = useWorkspace();
  const click = useClick({ view_id: view?.id });
  const suggest = useSuggest({ view_id: view?.id });
  return (
    <div className="scroller home" role="tabpanel" aria-labelledby="tab-home" tabIndex={0}>
      <div className="inner">
        {view ? <SurfaceProvider value={{ id: view.id, act: click, suggest, values: view.values }}><div className="blocks"><Blocks of={view.blocks} /></div></SurfaceProvider>
          : <p className="empty">{nameOf(seen.state.bot, "The app")} has published nothing here yet.</p>}
      </div>
    </div>
  );
}
