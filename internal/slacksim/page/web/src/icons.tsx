// The page's own pictures.
const paths: Record<string, string> = {
  close: "M5 5l10 10M15 5L5 15",
  back: "M12 4l-6 6 6 6",
  down: "M10 4v12M5 11l5 5 5-5",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  more: "M4.5 10h.01M10 10h.01M15.5 10h.01",
  lock: "M5.5 9h9v7h-9zM7.5 9V6.5a2.5 2.5 0 015 0V9",
  hash: "M8 3L6.5 17M13.5 3L12 17M3.5 7.5h13M3 12.5h13",
  home: "M3.5 9.5L10 4l6.5 5.5M5.5 8.5V16h9V8.5",
  eye: "M2.5 10s2.8-5 7.5-5 7.5 5 7.5 5-2.8 5-7.5 5-7.5-5-7.5-5zM10 12.2a2.2 2.2 0 100-4.4 2.2 2.2 0 000 4.4z",
  send: "M3.5 10L16.5 4l-4 12.5-3-5z",
  at: "M13 10a3 3 0 10-6 0 3 3 0 006 0zm0 0v1.2c0 2.4 3.6 2.2 3.6-1.2A6.6 6.6 0 1013.8 15.4",
  slash: "M12.5 3.5l-5 13",
  thread: "M3.5 4.5h13v8.5h-7l-3.5 3v-3h-2.5z",
  sun: "M10 13.2a3.2 3.2 0 100-6.4 3.2 3.2 0 000 6.4zM10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M4.7 15.3l1.1-1.1M14.2 5.8l1.1-1.1",
  moon: "M15.8 12.2A6.6 6.6 0 017.8 4.2a6.6 6.6 0 108 8z",
  auto: "M10 3.5a6.5 6.5 0 100 13zM10 3.5a6.5 6.5 0 010 13",
  columns: "M3 4.5h14v11H3zM10 4.5v11",
  pulse: "M2.5 10h3.2l2.6-6 3.6 12 2.4-6h3.2",
  check: "M4.5 10.5l3.6 3.6 7.4-8.2",
  image: "M3.5 4.5h13v11h-13zM3.5 13l4-4 3.5 3.5 2-2 3.5 3.5M13 7.8h.01",
  warning: "M10 3.5l7.2 12.6H2.8zM10 8.5v3.4M10 14h.01",
};

export function Icon({ name }: { name: string }) {
  return <svg className="i" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false"><path d={paths[name]} /></svg>;
}

/** Seal is the mark of an app that signs: a countersigned tick. */
export function Seal() {
  return (
    <svg className="seal" viewBox="0 0 40 40" aria-hidden="true" focusable="false">
      <rect width="40" height="40" rx="10" />
      <path d="M9.5 21.5l6.2 6.2L25 15.4" />
      <path d="M17 21.5l5.2 6.2L32 13" />
    </svg>
  );
}
