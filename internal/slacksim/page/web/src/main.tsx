import { createRoot } from "react-dom/client";
import { App } from "./app";
import { Duo } from "./duo";
import "./style.css";

const root = createRoot(document.getElementById("root")!);
const parameters = new URLSearchParams(location.search);
root.render(location.hash.startsWith("#duo/") ? <Duo /> : <App seat={parameters.has("seat")} fresh={!parameters.has("shared")} />);
