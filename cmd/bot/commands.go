package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
)

// root is the program itself. It is made for each use: the list of commands
// holds functions that look into it.
func root() *command {
	return &command{
		name: "bot",
		about: `
Countersign: people approve, in Slack, what AI agents are about to do.
Everything that "bot serve" needs to know is in one YAML file and in the
environment; see docs/settings.md.`,
		example: "bot demo",
		sub: []*command{
			demoCommand, initCommand, checkCommand, serveCommand, benchCommand, policyCommands, mcpCommands, receiptCommands, adminCommands, hookCommands, gatewayCommands, slacksimCommand, versionCommand,
			{
				name: "help", short: "Explains a command.", run: runHelp,
				about: "Prints what the program or one of its commands does, like the flag --help.",
				args: []argument{
					{name: "COMMAND", what: "The command, such as serve. Without one, all commands are listed.", optional: true},
					{name: "SUBCOMMAND", what: "A command of a group, such as check of policy.", optional: true},
				},
				example: "bot help policy check",
			},
		},
	}
}

var demoCommand = &command{
	name: "demo", short: "Runs everything on this machine, with nothing set up.", run: runDemo,
	about: `
Runs the whole product on this machine: a small Slack in the browser, an agent
that works on a folder of files, and the bot between them. It needs no keys, no
Redis and no Slack, and it stores nothing: everything is gone when it ends.

If OPENAI_API_KEY is set, the agent uses that model; OPENAI_BASE_URL and
OPENAI_MODEL are used too. Otherwise the model follows a script.`,
	example: "bot demo",
}

var initCommand = &command{
	name: "init", short: "Writes a first configuration, a policy and a Slack manifest.", run: runInit,
	about: `
Writes what a new installation starts with: config.yaml, policy.yaml, and
slack-manifest.yaml, from which Slack creates the app. It overwrites nothing,
and prints what to do next.`,
	example: "bot init --url https://countersign.your-company.com",
}

var checkCommand = &command{
	name: "check", short: "Lists everything that is wrong with an installation.", run: runCheck,
	about: `
Checks the configuration, the policy, the agents' folders, the environment and
the Slack manifest beside the configuration; with --online also Slack, Redis,
the model provider and the MCP servers, and which rules decide about their
tools. It lists everything that is wrong, with what to do about it. It writes
nothing and prints no secrets. It exits with 1 if anything is wrong.`,
	needs:   []string{"config"},
	example: "bot check --config config.yaml --online",
}

var serveCommand = &command{
	name: "serve", short: "Runs the bot for a real workspace.", run: runServe,
	about: `
Runs the bot until it is stopped with SIGINT or SIGTERM. Addresses and secrets
come from the environment: SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET, REDIS_URL,
OPENAI_API_KEY and others; see docs/settings.md. With --data it starts a Redis
of its own. SIGHUP reads the policy again, and of the configuration what can
change while the bot runs; the log says what did.`,
	needs:   []string{"config"},
	example: "bot serve --config config.yaml",
}

// what the policy commands read a policy against is the same for all of them.
const policyArgument = "The policy: a file, or a directory of files. Without it, the one that the configuration names."

var policyCommands = &command{
	name: "policy", short: "Checks, explains, tests and compares policies.",
	about: `
For those who write or review a policy. These commands change nothing.`,
	example: "bot policy check --config config.yaml",
	sub: []*command{
		{
			name: "check", short: "Lists everything that is wrong with a policy.", run: policyCheck,
			about: `
Reads a policy as the bot does, and lists everything that is wrong with it, with
file and line. If nothing is wrong, it lists the rules, and for each tool the
rules that can decide its calls.`,
			args:    []argument{{name: "POLICY", what: policyArgument, optional: true}},
			example: "bot policy check --config config.yaml",
		},
		{
			name: "explain", short: "Shows what a policy decides for one call, and why.", run: policyExplain,
			about: `
Shows for one call what each rule of the policy does, which one decides, and who
must approve. Name the call with --tool and --args, or with --call.`,
			args: []argument{{name: "POLICY", what: policyArgument, optional: true}},
			example: `
bot policy explain --config config.yaml --tool delete_file \
  --args '{"path": "a.txt"}' --requester U0123456789`,
		},
		{
			name: "test", short: "Runs the examples in a policy.", run: policyTest,
			about: `
Runs the examples in a policy, and says for each whether it holds. It exits with
1 if one does not.`,
			args:    []argument{{name: "POLICY", what: policyArgument, optional: true}},
			example: "bot policy test --config config.yaml",
		},
		{
			name: "replay", short: "Compares two policies on recorded calls.", run: policyReplay,
			about: `
Runs recorded calls through two policies and lists the calls on which they
differ. Calls that the new policy treats more leniently are marked. It prints no
arguments.`,
			needs:   []string{"new"},
			args:    []argument{{name: "CALLS", what: "The file of calls, as bot policy calls writes it; - reads standard input."}},
			example: "bot policy replay --config config.yaml --new next.yaml calls.jsonl",
		},
		{
			name: "calls", short: "Writes the calls that Redis holds, for a replay.", run: policyCalls,
			about: `
Writes the calls that the bot's policy has decided as JSON, one call per line.
It reads the Redis that REDIS_URL names, that of redis.addresses in the file of
--config, or the folder of --data. The output contains the arguments of the
calls: protect it like the data they are about.`,
			example: "bot policy calls --since 168h > calls.jsonl",
		},
	},
}

var adminCommands = &command{
	name: "admin", short: "Lists what waits and what is stuck, and repairs it.",
	about: `
For those who operate the bot. These commands work while the bot runs or while
it does not, on the Redis that REDIS_URL names, on that of redis.addresses in
the configuration that --config names, or on the folder that --data names.
The tools of MCP servers that changed are looked at and accepted with another
command, bot mcp pins.`,
	example: "bot admin parked",
	sub: []*command{
		{
			name: "list", short: "Lists the requests that wait for people.", run: adminList,
			about: `
Lists the requests that wait for people, the oldest first, with their calls and
the rules that ask. With --in-doubt, it lists only those with a call that may or
may not have taken effect; bot admin parked lists the runs in which nobody could
be asked about such a call yet. It reads no arguments.`,
			example: "bot admin list --json",
		},
		{
			name: "grants", short: "Lists who may approve for whom.", run: adminGrants,
			about: `
Lists the people who stand in for someone who is away, now or later, until when,
and who passed it on. They may approve only where the rule has delegates: true,
and the person who is away could approve. Countersign has no other approval that
stands for more than one call.`,
			example: "bot admin grants --team T0123456789",
		},
		{
			name: "run", short: "Tells the whole story of a run.", run: adminRun,
			about: `
Tells what happened to a run, in order: what the model did, who was asked, who
decided, what was executed and how it ended, together with the runs that it
resumes and that resume it. Of runs that were removed after retention.threads it
tells who asked, who decided what and when, and what became of the calls. It
prints no arguments and nothing that people or models wrote.`,
			args:    []argument{{name: "RUN", what: "The id of the run, or of the batch for which people are asked, as bot admin list and the log show them."}},
			example: "bot admin run run-01-7f3a",
		},
		{
			name: "facts", short: "Lists who asked for what, and who decided it.", run: adminFacts,
			about: `
Lists the facts about all requests, the oldest first: what people were asked
about, by which agent and for whom, who decided what and when, and what became
of the calls. Facts stay when a request is removed after retention.threads. Each
has the run and the batch that bot admin run takes, and with --json also the
digest of what people saw. A fact is stored when it happened, or later. --since
and --until are about when it was stored, so that a list of each month, made
after its end, has each fact once. It prints no arguments and nothing that
people or models wrote. It reads all facts, which takes a moment on a large
store.`,
			example: "bot admin facts --since 2026-01-01 --until 2026-02-01 --by U0123456789",
		},
		{
			name: "size", short: "Lists what is in Redis, how large it is, and why.", run: adminSize,
			about: `
Counts the keys in Redis by kind, and says how much memory each kind needs, why
it is there and for how long. It lists all keys, which takes a moment on a large
store.`,
			example: "bot admin size",
		},
		{
			name: "parked", short: "Lists the work that the bot has given up.", run: adminParked,
			about: `
Lists the work that the bot gave up after many failures, and the runs that wait
for an operator.`,
			example: "bot admin parked",
		},
		{
			name: "retry", short: "Retries parked work.", run: adminRetry,
			about: `
Has the bot try parked work again. If a call of a run is in doubt, people are
asked about it in its thread.`,
			args: []argument{
				{name: "KIND", what: "The kind of work: the first column of bot admin parked; runs for a run.", check: isKind},
				{name: "ID", what: "The id of the work: the second column of bot admin parked."},
			},
			example: "bot admin retry cards batch-01-7f3a",
		},
		{
			name: "redraw", short: "Redraws the cards of open requests.", run: adminRedraw,
			about: `
Has the bot redraw everything that shows the requests that wait for people:
cards, digests, and what their threads say. Use it after you restored an older
copy of Redis, when Slack may show decisions that the copy does not have. Slack
limits how fast that goes; the bot must be running.`,
			args: []argument{{
				name: "BATCH", optional: true, what: "Only this request, even if it is no longer waiting: the first column of bot admin list.",
			}},
			example: "bot admin redraw --config config.yaml",
		},
		{
			name: "convert", short: "Converts the store of an older version.", run: adminConvert,
			about: `
Changes a store that an older version made to the layout of this one, in which a
decision costs less of Redis. Stop all replicas first, and run no other bot
admin command meanwhile. If this one is interrupted, no replica starts until it
has been run again. Older versions do not start on the store afterwards.`,
			example: "bot admin convert --config config.yaml",
		},
		{
			name: "abandon", short: "Ends a run that cannot continue.", run: adminAbandon,
			about: `
Ends a parked run for good. The bot says so in its thread, which can be used
again. Nothing is executed.`,
			args:    []argument{{name: "RUN", what: "The id of the run, as bot admin parked and the thread show it."}},
			example: "bot admin abandon run-01-7f3a",
		},
		{
			name: "fulfill", short: "Delivers the result of a call that ran elsewhere.", run: adminFulfill,
			about: `
Delivers the result of a call that was approved here and executed elsewhere. The
agent continues with it.`,
			args: []argument{
				{name: "BATCH", what: "The id of the batch that the call is in: bot admin facts shows it, with that of the call."},
				{name: "CALL", what: "The id of the call."},
				{name: "JSON", what: "The result, as JSON: a text needs its quotes.", check: isJSON},
			},
			example: `bot admin fulfill batch-01-7f3a call-2 '"done"'`,
		},
		{
			name: "webhooks", short: "Lists the webhooks of remote agents, and the disabled ones.", run: adminWebhooks,
			about: `
Lists the webhooks for which there were messages, and with --config those of the
configuration: whether each is enabled, when it took a message, and how many
wait for it. Requests whose message is no longer tried follow, each on a line.`,
			example: "bot admin webhooks",
		},
		{
			name: "enable", short: "Enables a webhook again.", run: adminEnable,
			about: `
Enables a webhook that was disabled because its receiver took no message for
three days, or answered 410. The messages that wait for it are sent at once,
also if it was not disabled.`,
			args: []argument{
				{name: "AGENT", what: "The name of the remote agent: the first column of bot admin webhooks."},
				{name: "WEBHOOK", what: "The name of its webhook: the second column."},
			},
			example: "bot admin enable claude-code ci",
		},
		{
			name: "deliveries", short: "Lists the webhook messages about a request.", run: adminDeliveries,
			about: `
Lists the webhook messages about a request: how often each was tried, what went
wrong, and when it is tried next. The count starts again when the webhook is
disabled, and when a message is sent again.`,
			args:    []argument{{name: "REQUEST", what: "The id of the request, as the API and bot admin webhooks show it."}},
			example: "bot admin deliveries run-01-7f3a",
		},
		{
			name: "redeliver", short: "Sends the webhook messages about a request again.", run: adminRedeliver,
			about: `
Sends the messages about a request again, also those that were delivered, under
the ids that they had.`,
			args:    []argument{{name: "REQUEST", what: "The id of the request, as the API and bot admin webhooks show it."}},
			example: "bot admin redeliver run-01-7f3a",
		},
	},
}

var receiptCommands = &command{
	name: "receipt", short: "Checks receipts, and makes the keys for them.",
	about: `
For those who run calls that Countersign approved elsewhere: a receipt says what
was decided about a call, signed. See docs/receipts.md.`,
	example: "bot receipt verify --keys keys.json RECEIPT",
	sub: []*command{
		{
			name: "verify", short: "Checks whether a call may run on a receipt.", run: receiptVerify,
			about: `
Says who approved what, if one of the keys signed the receipt and the call may
run now. Otherwise it says why not, and exits with 1. It needs neither Redis nor
Slack; with the keys in a file, it needs no network. A receipt does not keep a
call from running twice: claim the decision before you run the call.`,
			needs:   []string{"keys"},
			args:    []argument{{name: "RECEIPT", what: "The receipt. Without it, or with -, the standard input is read.", optional: true}},
			example: "bot receipt verify --keys keys.json --tool delete_file --args args.json -",
		},
		{
			name: "key", short: "Makes a key pair.", run: receiptKey,
			about: `
Makes the key with which a bot signs receipts. The private key is written to a
file that only you can read. The public key is printed as a JSON Web Key Set.`,
			needs:   []string{"out"},
			example: "bot receipt key --out receipt-key.pem > keys.json",
		},
	},
}

var slacksimCommand = &command{
	name: "slacksim", short: "Runs a small Slack on this machine, for any Slack app.", run: runSlacksim,
	about: `
Runs a Slack workspace on this machine, for any Slack app. The Web API is under
/api/, a page to click in is under /, and whatever the page does is JSON under
/sim/; see docs/slacksim.md. It talks only to the app, stores nothing, and
has no login: anyone who can reach it can act as any person.`,
	example: `
bot slacksim --events-url http://127.0.0.1:3000/slack/events \
  --interactivity-url http://127.0.0.1:3000/slack/events \
  --commands-url http://127.0.0.1:3000/slack/events`,
}

var versionCommand = &command{
	name: "version", short: "Prints the version of this program.", run: runVersion,
	about: `
Prints the version of this program, the revision of the source it was built
from, and the version of Go that built it. "bot --version" does the same.`,
	example: "bot version",
}

// runHelp prints the help of what its arguments name.
func runHelp(ctx context.Context, in *call) error {
	args, err := in.parse()
	if err != nil {
		return err
	}
	about := &call{command: root(), path: "bot", words: append(args, "--help"), environ: in.environ, stdout: in.stdout, stderr: in.stderr}
	return about.do(ctx)
}

// run is the program. It returns when ctx ends and everything is stored.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	return runWith(ctx, nil, args, environ, stdout, stderr)
}

// runWith is the program with tools that agents have besides those of their
// configuration. Every command that reads a policy uses them too.
func runWith(ctx context.Context, extra config.ToolsFor, args, environ []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && slices.Contains([]string{"--version", "-version"}, args[0]) {
		args = append([]string{versionCommand.name}, args[1:]...)
	}
	args = gatewayArgs(hookArgs(args))
	in := &call{command: root(), path: "bot", words: args, extra: extra, environ: environ, stdout: stdout, stderr: stderr}
	return in.do(ctx)
}

// The exit codes of the program.
const (
	exitFailure = 1
	exitUsage   = 2
)

// exitCode prints the error for people, unless it was logged, and returns the exit
// code. An error can quote characters of a file or an argument that a terminal hides
// or obeys: they are written as escapes.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	code, text := exitFailure, "bot: "+err.Error()
	if wrong, ok := errors.AsType[usageError](err); ok {
		code, text = exitUsage, wrong.Error()
	}
	if _, logged := errors.AsType[loggedError](err); !logged {
		_, _ = fmt.Fprintln(stderr, approvals.Visible(text)) // an error cannot be reported any more
	}
	return code
}
