// Long content folds, with "Show more", as in Slack.
import { useLayoutEffect, useRef, useState, type ReactNode } from "react";

const most = 320; // pixels that are shown folded

/** Fold hides what goes beyond a height until the person asks for it. */
export function Fold({ children, open = false }: { children: ReactNode; open?: boolean }) {
  const inner = useRef<HTMLDivElement>(null);
  const [long, setLong] = useState(false);
  const [shown, setShown] = useState(open);
  useLayoutEffect(() => {
    const node = inner.current!;
    const measure = () => setLong(node.offsetHeight > most + 80);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(node);
    return () => watch.disconnect();
  }, []);
  const folded = long && !shown;
  return (
    <>
      <div className={folded ? "fold folded" : "fold"} style={folded ? { maxHeight: most } : undefined}><div ref={inner}>{children}</div></div>
      {long && <button type="button" className="link" aria-expanded={shown} onClick={() => setShown(!shown)}>{shown ? "Show less" : "Show more"}</button>}
    </>
  );
}
