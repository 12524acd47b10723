// Pictures are not fetched: that would tell their host who looks.
import { Icon } from "./icons";

export function ImageBox({ alt, url, small }: { alt: string; url?: string; small?: boolean }) {
  let host = "";
  try {
    host = url ? new URL(url).host : "";
  } catch {
    // An address without a host has none to name.
  }
  if (small) return <span className="image small" role="img" aria-label={alt} title={`${alt} (${host || "image"}, not loaded here)`}><Icon name="image" /></span>;
  return <div className="image" role="img" aria-label={alt}><Icon name="image" /><span>{alt}</span><small>{host && `from ${host}; `}pictures are not loaded here</small></div>;
}
