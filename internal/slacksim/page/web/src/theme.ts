import { useEffect, useState } from "react";

export type Theme = "auto" | "light" | "dark";
const order: Theme[] = ["auto", "light", "dark"];

const read = (): Theme => {
  const kept = localStorage.getItem("theme");
  return order.find((t) => t === kept) ?? "auto";
};

/** useTheme is the person's choice between light and dark, kept by the browser. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(read);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  useEffect(() => {
    const changed = () => setTheme(read());
    window.addEventListener("storage", changed);
    return () => window.removeEventListener("storage", changed);
  }, []);
  return [theme, () => setTheme((t) => order[(order.indexOf(t) + 1) % order.length]!)];
}
