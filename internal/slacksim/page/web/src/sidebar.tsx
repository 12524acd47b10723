// The channels, the direct messages and the app.
import { Icon } from "./icons";
import { Avatar } from "./message";
import type { Channel } from "./sim";
import { nameOf, useWorkspace } from "./workspace";

export type Place = { channel: string; thread?: string; home?: boolean };

interface Props { place: Place; unread: Record<string, { any: boolean; mentions: number }>; onGo(place: Place): void }

export function Sidebar({ place, unread, onGo }: Props) {
  const { seen } = useWorkspace();
  const { bot, groups } = seen.state;
  const item = (c: Channel) => {
    const here = place.channel === c.id && !place.home;
    const news = unread[c.id];
    const name = c.is_im ? nameOf(bot, bot.id) : c.name;
    const label = [name, news?.any && !here && "unread", news?.mentions && !here && `${news.mentions} for you`].filter(Boolean).join(", ");
    return (
      <li key={c.id}>
        <button type="button" className={news?.any && !here ? "item unread" : "item"} aria-current={here ? "page" : undefined} aria-label={label} data-channel={c.id} onClick={() => onGo({ channel: c.id })}>
          {c.is_im ? <Avatar person={bot} id={bot.id} size="tiny" /> : <Icon name={c.is_private ? "lock" : "hash"} />}
          <span className="name">{name}</span>
          {!!news?.mentions && !here && <span className="count">{news.mentions}</span>}
        </button>
      </li>
    );
  };
  const mine = groups.filter((g) => g.users.includes(seen.me.id));
  const direct = seen.channels.filter((c) => c.is_im);
  const start = bot && direct.length === 0;
  return (
    <nav className="side" aria-label="Channels and apps">
      <div className="self">
        <Avatar person={seen.me} id={seen.me.id} />
        <div><strong>{nameOf(seen.me, seen.me.id)}</strong>
          <small>{mine.length ? "in " + mine.map((g) => "@" + g.handle).join(", ") : seen.me.is_restricted ? "a guest" : "in no group"}</small>
          {seen.me.tz && <small className="zone">{seen.me.tz.replaceAll("_", " ")}</small>}</div>
      </div>
      <h2 id="side-channels">Channels</h2>
      <ul aria-labelledby="side-channels">{seen.channels.filter((c) => !c.is_im).map(item)}</ul>
      <h2 id="side-direct">Direct messages</h2>
      <ul aria-labelledby="side-direct">
        {direct.map(item)}
        {start && <li><button type="button" className="item" aria-current={place.channel === bot.id && !place.home ? "page" : undefined} onClick={() => onGo({ channel: bot.id })}><Avatar person={bot} id={bot.id} size="tiny" /><span className="name">{nameOf(bot, bot.id)}</span></button></li>}
      </ul>
      {seen.state.home !== false && <h2 id="side-apps">Apps</h2>}
      {seen.state.home !== false && <ul aria-labelledby="side-apps">
        <li><button type="button" className="item" aria-current={place.home ? "page" : undefined} onClick={() => onGo({ channel: direct[0]?.id ?? bot.id, home: true })}><Icon name="home" /><span className="name">{nameOf(bot, bot.id)} home</span></button></li>
      </ul>}
      <p className="foot">A simulated workspace: nothing here reaches the real Slack.</p>
    </nav>
  );
}
