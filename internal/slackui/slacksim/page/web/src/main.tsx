import { createRoot } from "react-dom/client";
import { App } from "./app";
import { Duo } from "./duo";
import "./style.css";

const root = createRoot(document.getElementById("root")!);
root.render(location.hash.startsWith("#duo/") ? <Duo /> : <App seat={new URLSearchParams(location.search).has("seat")} />);
