import { useEffect, useRef } from "react";

/** useTail keeps the end of a growing list in sight, unless the person scrolled away from it. */
export function useTail<T extends HTMLElement>(length: number) {
  const box = useRef<T>(null);
  useEffect(() => {
    const node = box.current;
    if (node && node.scrollHeight - node.scrollTop - node.clientHeight < 240) node.scrollTop = node.scrollHeight;
  }, [length]);
  return box;
}
