import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decode, flat, parse, plain, type Node } from "../src/mrkdwn";

/** show writes a tree so that a person can read it. */
function show(nodes: Node[]): string {
  return nodes.map((n) => {
    switch (n.type) {
      case "text": return n.text;
      case "break": return "⏎";
      case "emoji": return `(${n.name})`;
      case "user": case "group": case "channel": return `[${n.type} ${n.id}${n.label && " " + n.label}]`;
      case "broadcast": return `[all ${n.range}]`;
      case "date": return `[date ${n.timestamp} ${n.format} ${n.fallback}${n.url && " " + n.url}]`;
      case "link": return `[link ${n.url} ${n.label}]`;
      default: return `${n.type}{${show(n.children)}}`;
    }
  }).join("");
}

function reads(cases: [text: string, tree: string][]) {
  for (const [text, tree] of cases) test(text, () => assert.equal(show(parse(text)), tree));
}

const channel = (name: string) => (name === "ops" ? "C0OPS" : undefined);

describe("what is escaped stays text", () => {
  reads([
    ["&lt;!channel&gt; <!channel>", "<!channel> [all channel]"],
    ["&amp;lt;!channel&amp;gt;", "&lt;!channel&gt;"],
    ["&lt;@U0BOB&gt; and <@U0BOB>", "<@U0BOB> and [user U0BOB]"],
    ["*&lt;!here&gt;*", "bold{<!here>}"],
    ["`&lt;!here&gt;`", "code{<!here>}"],
    ["```&lt;!everyone&gt;```", "pre{<!everyone>}"],
    ["<https://a.example|&lt;!channel&gt;>", "[link https://a.example <!channel>]"],
    ["&lt;<!channel>&gt;", "<[all channel]>"],
    ["&lt;https://a.example|b&gt;", "<[link https://a.example https://a.example]|b>"],
    ["&nbsp;&quot;&copy;", "&nbsp;&quot;&copy;"],
  ]);

  test("decoding happens once", () => assert.equal(decode("&amp;amp;lt;"), "&amp;lt;"));
});

describe("entities", () => {
  reads([
    ["<@U0BOB|bob> <#C0OPS|ops> <!subteam^S0SRE|@sre>", "[user U0BOB bob] [channel C0OPS ops] [group S0SRE @sre]"],
    ["<!here> <!everyone>", "[all here] [all everyone]"],
    ["<https://a.example/?a=1&amp;b=2|see>", "[link https://a.example/?a=1&b=2 see]"],
    ["<mailto:a@b.example|write>", "[link mailto:a@b.example write]"],
    ["<!date^1772640000^{date} at {time}^https://a.example|then>", "[date 1772640000 {date} at {time} then https://a.example]"],
    ["<!unknown|label>", "label"],
    ["<!unknown>", "<!unknown>"],
    ["a < b > c", "a < b > c"],
    ["<broken", "<broken"],
    ["List<String> <no scheme|x>", "List<String> <no scheme|x>"],
    ["<two\nlines>", "<two⏎lines>"],
    // In code entities live, as in Slack: code is no safe place for them.
    ["`<@U0BOB>`", "code{[user U0BOB]}"],
    ["```<!channel>```", "pre{[all channel]}"],
  ]);
});

describe("styles", () => {
  reads([
    ["*bold* _italic_ ~gone~ `code`", "bold{bold} italic{italic} strike{gone} code{code}"],
    ["*_both_*", "bold{italic{both}}"],
    ["_*both*_", "italic{bold{both}}"],
    ["2*3*4 snake_case_name", "2*3*4 snake_case_name"],
    ["* not * bold", "* not * bold"],
    ["*open", "*open"],
    ["**two**", "**two**"],
    ["*over\nlines*", "*over⏎lines*"],
    ["(*in brackets*), *a*.", "(bold{in brackets}), bold{a}."],
    ["*<https://a.example|a*b>*", "bold{[link https://a.example a*b]}"],
    ["*`a*b`*", "bold{code{a*b}}"],
    ["`*literal* :x:`", "code{*literal* :x:}"],
    ["```\n*literal* :x:\n```", "pre{*literal* :x:}"],
    ["a ```b``` c ```open", "a pre{b} c ```open"],
    ["&gt; quoted\n&gt; again\nnot", "quote{quoted⏎again}not"],
    ["&gt;&gt;&gt; all\nof it", "quote{all⏎of it}"],
    ["a &gt; b", "a > b"],
    [":white_check_mark: at 12:30 :no_such:", "(white_check_mark) at 12:30 (no_such)"],
  ]);
});

describe("plain text in mrkdwn", () => {
  test("addresses and names of channels become links", () => {
    assert.equal(show(parse("see https://a.example/x?y=1&amp;z, #ops and #nowhere.", { channel })), "see [link https://a.example/x?y=1&z https://a.example/x?y=1&z], [channel C0OPS ops] and #nowhere.");
  });
  test("verbatim leaves them alone, and nothing else", () => {
    assert.equal(show(parse("https://a.example #ops *b* <@U0BOB> &lt;", { channel, verbatim: true })), "https://a.example #ops bold{b} [user U0BOB] <");
  });
  test("@name is never a mention", () => assert.equal(show(parse("@bob @channel @here")), "@bob @channel @here"));
});

test("plain_text has no markup but emoji", () => {
  assert.equal(show(plain("*a* <!channel> &lt; :x:\n`b`")), "*a* <!channel> &lt; (x)⏎`b`");
  assert.equal(show(plain(":x:", false)), ":x:");
});

test("a notification is the text without its markup", () => {
  assert.equal(flat(parse("*Bob*: <@U0BOB> see <https://a.example|this>\n:x:"), (n) => `(${n.type})`), "Bob: (user) see this (emoji)");
});
