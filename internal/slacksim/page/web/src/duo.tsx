// Two people side by side: each is a page of its own, in a frame.
import { Icon } from "./icons";
import { useTheme } from "./theme";

export function Duo() {
  const [theme, turn] = useTheme();
  const [, left = "", right = "", channel = ""] = decodeURIComponent(location.hash.slice(1)).split("/");
  return (
    <div className="duo">
      <header className="top">
        <strong>Side by side</strong>
        <span className="hint">Two people at their own screens: what one does, the other sees.</span>
        <div className="switches">
          <button type="button" className="icon" aria-label={"Colors: " + theme} title={"Colors: " + theme} onClick={turn}><Icon name={{ auto: "auto", light: "sun", dark: "moon" }[theme]} /></button>
          <button type="button" className="act" onClick={() => { location.hash = `#${left}/${channel}`; location.reload(); }}>One person</button>
        </div>
      </header>
      {[left, right].map((user, i) => <iframe key={i} title={`Screen ${i + 1}`} src={`/?seat=${i}${i && left === right ? "&shared" : ""}#${user}/${channel}`} />)}
    </div>
  );
}
