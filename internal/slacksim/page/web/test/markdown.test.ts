import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { markdown, type Part, type Span } from "../src/markdown";

/** show writes a tree so that a person can read it. */
const show = (parts: Part[]): string => parts.map((p) => {
  switch (p.type) {
    case "heading": return `h${p.level}{${line(p.children)}}`;
    case "paragraph": return `p{${line(p.children)}}`;
    case "fence": return `pre{${p.text}}`;
    case "rule": return "---";
    case "quote": return `quote{${show(p.parts)}}`;
    case "list": return `${p.start === undefined ? "ul" : "ol" + p.start}{${p.items.map(show).join("|")}}`;
    case "table": return `table{${[p.head, ...p.rows].map((r) => r.map(line).join("|")).join("/")}}`;
  }
}).join(" ");
const line = (spans: Span[]): string => spans.map((s) => {
  switch (s.type) {
    case "text": return s.text;
    case "code": return `code{${s.text}}`;
    case "break": return "⏎";
    case "link": return `[${s.url} ${line(s.children)}]`;
    default: return `${s.type}{${line(s.children)}}`;
  }
}).join("");

function reads(cases: [text: string, tree: string][]) {
  for (const [text, tree] of cases) test(text, () => assert.equal(show(markdown(text)), tree));
}

describe("styles", () => {
  reads([
    ["a **b** *c* _d_ __e__ ~~f~~ `g`", "p{a bold{b} italic{c} italic{d} bold{e} strike{f} code{g}}"],
    ["**a *b* c**", "p{bold{a italic{b} c}}"],
    ["2 * 3 * 4 and snake_case_name and **open", "p{2 * 3 * 4 and snake_case_name and **open}"],
    ["`**not**` \\*not\\*", "p{code{**not**} *not*}"],
    ["one\ntwo\n\nthree", "p{one⏎two} p{three}"],
  ]);
});

describe("blocks", () => {
  reads([
    ["# A\n### B **c**\ntext", "h1{A} h3{B bold{c}} p{text}"],
    ["```go\nx := *y*\n<b>\n```\nafter", "pre{x := *y*\n<b>} p{after}"],
    ["```\nnever closed", "pre{never closed}"],
    ["- a\n- b\n  - c\n\n3. d\n4. e", "ul{p{a}|p{b} ul{p{c}}} ol3{p{d}|p{e}}"],
    ["> a\n> - b\n\nc", "quote{p{a} ul{p{b}}} p{c}"],
    ["| a | b |\n|---|:-:|\n| 1 | **2** |\n| x \\| y |", "table{a|b/1|bold{2}/x | y|}"],
    ["a\n\n---\n\nb", "p{a} --- p{b}"],
  ]);
});

describe("links", () => {
  reads([
    ["[the **docs**](https://a.example/x) https://b.example/y.", "p{[https://a.example/x the bold{docs}] [https://b.example/y https://b.example/y].}"],
    ["![a chart](https://a.example/c.png)", "p{[https://a.example/c.png a chart]}"],
    ["[x](javascript:alert) <https://c.example>", "p{[javascript:alert x] [https://c.example https://c.example]}"],
  ]);
});

describe("hostile text stays text", () => {
  reads([
    ["<img src=x onerror=alert(1)> <!channel> <@U0BOB> &lt;", "p{<img src=x onerror=alert(1)> <!channel> <@U0BOB> &lt;}"],
  ]);
  for (const bad of ["*", "_", "`", "[", "> ", "- ", "**a ", "[a](", "| ", "  - a\n", "~~x", "<https://"]) {
    test(`a lot of ${JSON.stringify(bad)} is read soon`, { timeout: 5000 }, () => {
      const began = process.cpuUsage(); // the machine may be busy with something else
      markdown(bad.repeat(3000));
      assert.ok(process.cpuUsage(began).user < 2e6);
    });
  }
});
